"""How far outputs are from their references, and from which models those come: what `compare` is made of."""
