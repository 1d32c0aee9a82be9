"""Who may do what: principals and their topics (principal.py), and what shows who one is (access.py, token.py)."""
