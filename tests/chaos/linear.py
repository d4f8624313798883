"""Is a recorded history linearizable? A search that trusts nothing but what clients were told and when: no versions, no watches.

Each object is one register: absent, or holding the token of its last write (every write has a token of its own). A conditional write
compares with the token that its client had last seen. The history is linearizable when some order of all operations exists that respects
real time (what ended before another began comes first) and in which every answer is what the register would have said. Registers are
checked one by one; a list is a read of each of them. What a list shows as one moment, history.py checks.

The search is that of Wing and Gong with the memory of Lowe, made small by these facts:
  - an operation that changes nothing and may come now, comes now: nobody else minds;
  - one whose answer was lost has no end, so it can be put off until somebody needs it. It is tried only where the next operation does not
    fit the state, as the last link of a chain that makes it fit; of lost writes that nobody saw, those alike are tried once;
  - a token never comes back, so whoever saw it must come before it goes;
  - what failed with some lost writes used up fails with more of them used up, too.
"""
import collections
import math

ABSENT = None
KEEP = object()  # the state stays as it is
LIMIT = 2000000  # states looked at for one register

Step = collections.namedtuple("Step", "start end needs makes op")


def fits(needs, state):
    what, token = needs
    if what == "absent":
        return state is ABSENT
    if what == "is":
        return state == token
    return state is not ABSENT and (what == "present" or state != token)


def implies(needs, other):
    """Whether a state that fits the first fits the second for sure."""
    if other[0] == "present":
        return needs[0] != "absent"
    return needs[0] == "is" and other[0] == "other" and needs[1] != other[1]


def wants(op):
    """What a write that takes effect needs, and what it makes."""
    if op.kind == "create":
        return ("absent", None), op.token
    needs = ("is", op.expected) if op.kind in ("update-at", "patch-test", "delete-at") else ("present", None)
    return needs, ABSENT if op.kind.startswith("delete") else op.token


def steps_of(op, problems):
    """[(name, step)] of an operation."""
    reads = op.kind in ("get", "list", "get-any")
    if op.kind == "get-any" or op.status == 429:
        return []  # may be old, by its own wish; was not begun
    if op.status is None or op.status >= 500:
        return [] if reads else [(op.name, Step(op.start, math.inf, *wants(op), op))]
    if op.kind == "list" and op.status == 200:
        return [(name, Step(op.start, op.end, ("is", token) if token is not ABSENT else ("absent", None), KEEP, op))
                for name, token in op.shown.items()]
    if op.status in (200, 201):
        if not reads and not op.kind.startswith("delete") and op.seen != op.token:
            problems.append("answered with another's token: %s" % op)
        needs, makes = (("is", op.seen), KEEP) if reads else wants(op)
    elif op.status == 404 and op.kind != "create":
        needs, makes = ("absent", None), KEEP
    elif op.status == 409 and op.kind == "create":
        needs, makes = ("present", None), KEEP
    elif op.status in (409, 422) and op.expected is not None:
        needs, makes = ("other", op.expected), KEEP
    else:
        problems.append("was answered with an unexpected status: %s" % op)
        return []
    return [(op.name, Step(op.start, op.end, needs, makes, op))]


class Register:
    """The search over one object."""

    def __init__(self, name, steps):
        self.name = name
        self.steps = sorted((s for s in steps if s.end != math.inf), key=lambda s: (s.start, s.end))
        self.lost = sorted((s for s in steps if s.end == math.inf), key=lambda s: s.start)
        seen = {s.needs[1] for s in steps if s.needs[0] in ("is", "other")}
        self.readers = collections.defaultdict(list)  # token -> places of those that met it
        for place, step in enumerate(self.steps):
            if step.needs[0] == "is":
                self.readers[step.needs[1]].append(place)
        self.writer = {s.makes: number for number, s in enumerate(self.lost) if s.makes in seen}  # lost, but seen
        alike = collections.defaultdict(list)
        for number, step in enumerate(self.lost):
            if step.makes not in self.writer:
                alike[step.needs, step.makes is ABSENT].append(number)
        self.alike = list(alike.values())
        self.looked, self.farthest = 0, (-1, None)

    def makers(self, needs, used, bound):
        """Lost writes, not used up and begun by then, that make what was not so before; one of those alike."""
        if needs[0] == "is":
            numbers = [self.writer[needs[1]]] if needs[1] in self.writer else []
        else:
            numbers = [next((n for n in group if not used >> n & 1), None) for group in self.alike] + list(self.writer.values())
        return [n for n in numbers if n is not None and not used >> n & 1 and self.lost[n].start <= bound and
                fits(needs, self.lost[n].makes) and not implies(self.lost[n].needs, needs)]

    def chains(self, first, done, state, used, needs, bound):
        """(state, used) after lost writes that make the state fit; at once where it fits already."""
        if fits(needs, state):
            yield state, used
            return
        for number in self.makers(needs, used, bound):
            step = self.lost[number]
            for before, more in self.chains(first, done, state, used | 1 << number, step.needs, bound):
                if self.may_go(before, first, done):
                    yield step.makes, more

    def may_go(self, state, first, done, but=None):
        """Whether all that saw this state have come already."""
        return all(place < first or place == but or done >> (place - first) & 1 for place in self.readers.get(state, ()))

    def window(self, first, done):
        """The operations that may come next, and how late a lost one may have begun that comes before them."""
        place, bound, found = first, math.inf, []
        while place < len(self.steps) and self.steps[place].start <= bound:
            if not done >> (place - first) & 1:
                bound = min(bound, self.steps[place].end)
                found.append(place)
            place += 1
        return [p for p in found if self.steps[p].start <= bound], bound

    def take(self, first, done, place):
        done |= 1 << (place - first)
        while done & 1:
            first, done = first + 1, done >> 1
        return first, done

    def settle(self, first, done, state):
        """Takes all that change nothing and fit; the place after them."""
        while True:
            places, bound = self.window(first, done)
            idle = [p for p in places if self.steps[p].makes is KEEP and fits(self.steps[p].needs, state)]
            if not idle:
                return first, done, places, bound
            for place in idle:
                done |= 1 << (place - first)
            while done & 1:
                first, done = first + 1, done >> 1

    def next(self, first, done, state, used):
        """What may follow, the likeliest last."""
        first, done, places, bound = self.settle(first, done, state)
        if self.farthest[0] < first:
            self.farthest = first, (state, places, [p for p in self.readers.get(state, ()) if p >= first and not done >> (p - first) & 1])
        if not places:
            return None
        following = []
        for place in sorted(places, key=lambda p: -self.steps[p].end):
            step = self.steps[place]
            for before, more in self.chains(first, done, state, used, step.needs, bound):
                if step.makes is KEEP:
                    following.append(self.take(first, done, place) + (before, more))
                elif self.may_go(before, first, done, place):
                    following.append(self.take(first, done, place) + (step.makes, more))
        # Lost writes are for where nothing else goes.
        following.sort(key=lambda f: -bin(f[3]).count("1"))
        return following

    def check(self):
        """None, or what is wrong."""
        start = (0, 0, ABSENT, 0)
        stack, known = [start], collections.defaultdict(list)
        while stack:
            self.looked += 1
            if self.looked > LIMIT:
                return "%s: no order found among %d states: %s" % (self.name, LIMIT, self.why())
            following = self.next(*stack.pop())
            if following is None:
                return None
            for one in following:
                tried = known[one[:3]]
                if not any(used & one[3] == used for used in tried):
                    tried.append(one[3])
                    stack.append(one)
        return "%s: no order of the operations explains the answers: %s" % (self.name, self.why())

    def why(self):
        first, (state, places, readers) = self.farthest
        text = "%d of %d fit, then the object is %s; next would be %s" % (
            first, len(self.steps), "absent" if state is ABSENT else state, "; ".join(str(self.steps[p].op) for p in places[:6]))
        return text + "".join("; it was seen by %s" % self.steps[p].op for p in readers[:3])


def check(operations, names=()):
    """Problems of a history that begins with nothing there. A list must show `names`, or say that they are absent."""
    problems, registers = [], collections.defaultdict(list)
    names = set(names) | {op.name for op in operations if op.kind != "list"}
    for op in operations:
        if op.kind == "list" and op.status == 200:
            op.shown = {name: op.items[name][1] if name in op.items else ABSENT for name in names | set(op.items)}
        for name, step in steps_of(op, problems):
            registers[name].append(step)
    for name, steps in sorted(registers.items()):
        problem = Register(name, steps).check()
        if problem:
            problems.append(problem)
    return problems
