"""The hunter: random models and feeds, ONNX Runtime's CPU provider and ours, and what differs made small.

    python -m tests.hunt --minutes 10 --seed 1

    case.py        what is run: a model, its feeds, how the sessions are made
    builder.py     a model grows node by node; every node is evaluated at once, for several sizes
    recipes/       what may stand around each operator (a row per operator that XyntraEP claims)
    saved.py       what ONNX Runtime's optimiser makes of some nodes, for operators that nobody else writes
    generator.py   (seed, number) -> case
    feeds.py       which sizes and values the runs of a case get
    judge.py       both providers, and the classes of what differs
    noise.py       which elements ONNX Runtime itself cannot be sure of
    worker.py      a child process that does all this; pool.py holds it, and sees it crash or hang
    reduce.py      the smallest case that shows the same
    report.py      folders for findings, the table, the JSON
    cli.py         the command

A numpy Generator seeded by (seed, number) draws everything, not hypothesis: a case is made in a child that may die of it, must be
made again from two numbers alone, and runs on in a loop of minutes; what hypothesis shrinks is its stream of choices, inside one
process, while here the model itself is cut (an inner tensor becomes an input), which no stream of choices can say.
"""
