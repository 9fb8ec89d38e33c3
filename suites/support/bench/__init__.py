"""What times a row: check, stopping rule, floors and limits of the card."""
