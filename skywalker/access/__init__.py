"""Who may do what: principals (principal.py), what shows who one is (access.py, token.py), and topics (pattern.py)."""
