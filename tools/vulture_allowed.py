"""Names that something outside the code calls: vulture counts them as used."""
