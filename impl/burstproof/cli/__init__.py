"""The subcommands of ``burstproof``: run, info, convert, verify."""
