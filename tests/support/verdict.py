"""What a test says that found a promise broken: a lost write, an answer that no order explains, a device given out twice.

Such a thing may show itself in one run of many, so tools/run-tests takes no second result for it, as it does where something only came too late
or did not start: it knows it by the mark.
"""
from cluster import Failure

MARK = "BROKEN: "


def judge(problems, hint=""):
    """Ends the test where there are problems."""
    for problem in problems[:20]:
        print(MARK + " ".join(str(problem).split("\n")), flush=True)
    if problems:
        raise Failure("%d problems%s" % (len(problems), hint))
