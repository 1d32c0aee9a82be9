"""What the commands have in common: their options, and what they found, as tables, pages, pictures and plain data."""
