"""Models of full size, as users of PyTorch write them: what `bench run torch` measures unless models are named.

A module here declares ARCHITECTURES, a list of rows, as those beside this folder do; nothing else needs to know of a new file.
"""
