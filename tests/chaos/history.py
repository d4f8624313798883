"""A recorded history of concurrent operations on a few objects, checked against what one revisioned register per object allows.

The order of all writes is known beforehand: every write has a version of its own, and a watch lists them. So each object is a row of
states (absent, or present with a version), and what is left to check is that every operation fits into its real time:
  - every acknowledged write is one event, every event is the write of somebody (perhaps of one whose answer was lost);
  - an event follows lawfully from the state before it: a create from absence, an update with a version from that very version;
  - whoever began after another had ended sees that other's effect (strict serializability, over all objects);
  - an operation that was refused could have met, at some moment while it ran, a state that justifies the refusal.
Times are of one monotonic clock. An operation whose answer was lost has no end: it may take effect at any time after its start, or never.
"""
import bisect
import collections
import heapq
import math

Event = collections.namedtuple("Event", "verb name version token uid")

WRITES_TOKEN = ("create", "update", "update-at", "patch", "patch-test")
NEEDS_VERSION = ("update-at", "delete-at", "patch-test")


class Operation:
    """One request, from the client's point of view."""

    def __init__(self, kind, name, token=None, basis=None, start=0.0, expected=None):
        self.kind, self.name, self.token, self.start = kind, name, token, start
        self.basis = basis      # the version (for patch-test: the token) that the client took to be the latest
        self.expected = expected  # of a conditional write: the token that the client had seen at that version
        self.end = math.inf     # stays so when the answer was lost
        self.status = None      # of HTTP; None when the answer was lost
        self.failed = None      # of HTTP, where the server said that it did not know what became of it
        self.version = None     # what was answered: of the object, or of the list
        self.seen = None        # the token answered
        self.uid = None
        self.items = None       # of a list: {name: (version, token)}

    def __str__(self):
        text = "%s %s" % (self.kind, self.name)
        for field in ("token", "basis", "status", "version", "seen"):
            if getattr(self, field) is not None:
                text += " %s=%s" % (field, getattr(self, field))
        return "%s [%.4f, %.4f]" % (text, self.start, self.end)


class State:
    """What an object is from one version to the next."""

    def __init__(self, version, present, token=None, uid=None):
        self.version, self.present, self.token, self.uid = version, present, token, uid
        self.began = -math.inf  # start of the operation that made it
        self.done = -math.inf   # end of that operation
        self.until = math.inf   # version of the next state
        self.over = math.inf    # end of the operation that made the next state
        self.later_began = -math.inf  # earliest start among those that made this state and the later ones


def check_stream(events, start=0, initial=None):
    """Problems of one watch by itself: versions grow, and each verb fits what was there before."""
    problems, present, last = [], dict(initial or {}), start
    for event in events:
        if event.version <= last:
            problems.append("event %s comes after version %d" % (event, last))
        last = max(last, event.version)
        if (event.verb == "ADDED") == (event.name in present):
            problems.append("event %s, but the object was %s" % (event, "there" if event.name in present else "not there"))
        if event.verb == "DELETED":
            present.pop(event.name, None)
        else:
            present[event.name] = event.uid
    return problems


class Checker:
    """The objects begin absent; `events` are all that happened to them, in order."""

    def __init__(self, operations, events):
        self.operations, self.events, self.problems = operations, events, []
        self.states = collections.defaultdict(lambda: [State(0, False)])
        self.made = {}          # id of an operation -> version that it made
        self.by_token = {op.token: op for op in operations if op.kind in WRITES_TOKEN}

    def check(self):
        self.problems += check_stream(self.events)
        self.build()
        self.check_writes()
        self.check_time()
        return self.problems

    def complain(self, text, op):
        self.problems.append("%s: %s" % (text, op))

    def build(self):
        deletes = collections.defaultdict(list)
        lost = collections.defaultdict(list)
        for op in self.operations:
            if op.kind.startswith("delete"):
                if op.status == 200:
                    deletes[op.uid].append(op)
                elif op.status is None:
                    lost[op.name].append(op)
        for event in self.events:
            state = State(event.version, event.verb != "DELETED", event.token, event.uid)
            if event.verb != "DELETED":
                op = self.by_token.get(event.token)
            elif deletes[event.uid]:
                op = deletes[event.uid].pop()
            else:
                # Any of the lost ones may have been it; the earliest allows the most.
                op = min(lost[event.name], key=lambda one: one.start, default=None)
            if op is None:
                self.problems.append("nobody wrote event %s" % (event,))
            else:
                state.began, state.done = op.start, op.end
                if op.status is not None or event.verb != "DELETED":
                    if id(op) in self.made:
                        self.complain("wrote twice", op)
                    self.made[id(op)] = event.version
            row = self.states[event.name]
            row[-1].until, row[-1].over = event.version, state.done
            row.append(state)
        for left in deletes.values():
            for op in left:
                self.complain("acknowledged, but no event shows it", op)
        self.versions = {name: [s.version for s in row] for name, row in self.states.items()}
        for row in self.states.values():
            earliest = math.inf
            for state in reversed(row):
                earliest = state.later_began = min(earliest, state.began)

    def place_at(self, name, version):
        """The place in the object's row of the state that it had at a version."""
        return bisect.bisect_right(self.versions.get(name, [0]), version) - 1

    def state_at(self, name, version):
        return self.states[name][self.place_at(name, version)]

    def check_writes(self):
        by_version = {event.version: event for event in self.events}
        for op in self.operations:
            version = self.made.get(id(op))
            if op.kind in WRITES_TOKEN and op.status in (200, 201):
                event = by_version.get(op.version)
                if version is None or event is None:
                    self.complain("acknowledged, but no event shows it", op)
                    continue
                if version != op.version or event.token != op.token or event.name != op.name or op.seen != op.token:
                    self.complain("answered otherwise than event %s" % (event,), op)
            elif version is not None and op.status not in (None, 200, 201):
                self.complain("refused, but took effect at version %d" % version, op)
            if version is not None:
                self.check_step(op, version)

    def check_step(self, op, version):
        row = self.states[op.name]
        place = self.place_at(op.name, version)
        before, after = row[place - 1], row[place]
        if op.kind == "create":
            if before.present:
                self.complain("created at %d over version %d" % (version, before.version), op)
            return
        if not before.present:
            self.complain("took effect at %d where nothing was" % version, op)
        elif after.uid != before.uid:
            self.complain("changed the uid at %d" % version, op)
        if op.kind in ("update-at", "delete-at") and before.version != op.basis:
            self.complain("took effect at %d although the version was %d" % (version, before.version), op)
        if op.kind == "patch-test" and before.token != op.basis:
            self.complain("took effect at %d although the token was %s" % (version, before.token), op)

    def possible(self, op, floor):
        """The states of the object that the operation may have met."""
        found, row = [], self.states[op.name]
        for place in range(self.place_at(op.name, floor), len(row)):
            if row[place].later_began > op.end:
                break
            if row[place].began <= op.end and row[place].over >= op.start:
                found.append(row[place])
        return found

    def check_time(self):
        ended, floor = [], 0  # floor: the newest version that somebody knew of before this operation began
        for number, op in enumerate(sorted(self.operations, key=lambda one: one.start)):
            while ended and ended[0][0] < op.start:
                floor = max(floor, heapq.heappop(ended)[2])
            known = self.check_one(op, floor, self.made.get(id(op)))
            if known is not None and op.end != math.inf:
                heapq.heappush(ended, (op.end, number, known))

    def check_one(self, op, floor, version):
        """Checks one operation; returns the version that its end proves to be committed, if any."""
        if version is not None:
            if version <= floor:
                self.complain("took effect at %d, but version %d was known before it began" % (version, floor), op)
            return version
        if op.status is None or op.status >= 500 or op.status == 429:
            return None
        if op.kind == "list":
            return self.check_list(op, floor)
        if op.kind == "get-any":
            if op.status == 200 and not any(s.version == op.version and s.token == op.seen and s.began <= op.end
                                            for s in self.states[op.name]):
                self.complain("read what never was", op)
            return None
        possible = self.possible(op, floor)
        if op.status == 404:
            met = [s for s in possible if not s.present]
        elif op.kind == "get":
            met = [s for s in possible if s.present and s.version == op.version and s.token == op.seen]
        elif op.kind == "create" and op.status == 409:
            met = [s for s in possible if s.present]
        elif op.kind in NEEDS_VERSION and op.status in (409, 422):
            met = [s for s in possible
                   if s.present and (s.token if op.kind == "patch-test" else s.version) != op.basis]
        elif op.status in (200, 201):
            return None  # complained about already
        else:
            self.complain("was answered with an unexpected status", op)
            return None
        if not met:
            self.complain("no state it can have met allows the answer; possible: %s" %
                          [(s.version, s.token if s.present else "absent") for s in possible[-4:]], op)
            return None
        return min(s.version for s in met)

    def check_list(self, op, floor):
        if op.status != 200:
            self.complain("was answered with an unexpected status", op)
            return None
        if op.version < floor:
            self.complain("version %d was known before it began" % floor, op)
        for name in set(op.items) | set(self.states):
            state = self.state_at(name, op.version)
            want = (state.version, state.token) if state.present else None
            if op.items.get(name) != want:
                self.complain("shows %s as %s, expected %s" % (name, op.items.get(name), want), op)
            if state.began > op.end:
                self.complain("shows what began after its end", op)
        return op.version
