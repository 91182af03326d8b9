"""LSTM, GRU and RNN on CPUs: the time steps, after the product that projects all inputs.

README.md has the idea and the variant. Read first: `supersteps.py`.
"""
