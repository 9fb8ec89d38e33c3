"""What follows from measurements: verdicts, goals, comparison, history, and what each requirement has to show."""
