# Functions like those of programs, with which line trace calibrates. Each makes as many passes as it is given. In `jumps_far`
# the numbers of the instructions behind the `if` are objects that are made for the event.

FUNCTIONS = """
LIST = [1, 2]
LIMIT = 7

class Thing:
    def __init__(self, x):
        self.x = x
        self.y = 0

    def grow(self, by):
        self.y += by
        return self.x

class Around:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False

def nothing():
    return 1

def less(x, y):
    if x < y:
        return x
    return y

def climb(n):
    if n < 1:
        return 0
    return climb(n - 1) + 1

def numbers(passes):
    for each in passes:
        yield each

def squares(passes):
    n = 0
    last = len(passes)
    while n < last:
        yield n * n
        n += 1

def arithmetic(passes, s=0):
    for each in passes:
        x = each * each %% 7
        s += x
        y = s - each

def branches(passes, y=0):
    for each in passes:
        x = each * each %% 7
        if x > 3:
            y = x + each
        elif x > 1:
            y = -x
        elif each > 20:
            y = x
        else:
            y += 1

def keeps(passes, l=[0] * 200):
    for each in passes:
        l[each] = each
        x = l[each - 1]
        y = x

def appends(passes):
    l = []
    for each in passes:
        l.append(each)
        if each > 30:
            l.pop()

def counts(passes, kept={}):
    for each in passes:
        key = each %% 5
        kept[key] = kept.get(key, 0) + 1

def texts(passes):
    for each in passes:
        name = f"{each}-x"
        name = name.upper() + "y"

def attributes(passes, o=Thing(1), q=Thing(2)):
    for each in passes:
        o.x = q.y
        q.x = o.x - each
        q.y = o.y

def methods(passes, o=Thing(1)):
    for each in passes:
        o.grow(each)

def makes(passes):
    for each in passes:
        o = Thing(each)
        x = o

def calls(passes):
    for each in passes:
        nothing()
        x = less(each, 20)
        y = less(20, x)

def calls_nothing(passes):
    for each in passes:
        nothing()

def calls_once(passes, x=0):
    for each in passes:
        y = each & 3
        x = less(x, y)

def recursion(passes):
    for each in passes:
        climb(5)

def calls_into_c(passes):
    for each in passes:
        x = len(LIST)
        y = str(x)
        x = abs(each)

def global_names(passes, x=0):
    for each in passes:
        if LIMIT > each:
            x += 1
        LIST
        LIST[1] = each

def nested(passes, s=0):
    for a in passes:
        for b in LIST:
            s += a ^ b
        s -= a

def goes_down(passes, n=27):
    steps = 0
    last = len(passes)
    while steps < last:
        n = n // 2 if n %% 2 == 0 else 3 * n + 1
        if n == 1:
            n = 27 + steps
        steps += 1

def tries(passes, s=0):
    for each in passes:
        try:
            s += each
        except ValueError:
            s = 0
        finally:
            s -= 1

def spread(passes, s=0):
    for each in passes:
        s += (
            max(each, 3)
            + len(LIST)
            + each * 3
        )

def spread_calls(passes):
    for each in passes:
        x = less(
            each,
            20,
        )

def spread_methods(passes, text="a b"):
    for each in passes:
        x = (
            text
            .upper()
            .lower()
        )

def matches(passes, x=0):
    for each in passes:
        match each %% 9:
            case 0:
                x = 1
            case 1 | 2:
                x = 2
            case 3:
                x = 3
            case n if n > 6:
                x = n
            case _:
                x = 0

def blocks(passes, around=Around(), s=0):
    for each in passes:
        with around as x:
            s += each
        y = s

def floats(passes, y=1.5):
    for each in passes:
        x = each * 0.5 + y
        y = x - 1.0

def raises(passes, kept={}):
    for each in passes:
        try:
            kept[each]
        except KeyError:
            x = each

def closes(passes):
    total = 0
    def count(by):
        nonlocal total
        total += by
    for each in passes:
        count(each)

def steps(passes, s=0):
    for each in numbers(passes):
        s += each

def longer_steps(passes, s=0):
    for each in squares(passes):
        s += each
        x = s

async def one(each):
    return each

async def await_each(passes):
    for each in passes:
        x = await one(each)

async def await_sum(passes, s=0):
    for each in passes:
        s += await one(each)
    return s

def sums_awaited(passes):
    try:
        await_sum(passes).send(None)
    except StopIteration:
        pass

def awaits(passes):
    try:
        await_each(passes).send(None)
    except StopIteration:
        pass

def jumps(passes):
    return [each for each in passes]

def jumps_if(passes):
    return {each: each + 1 for each in passes if each %% 2 == 0}

def jumps_far(passes):
    if passes is None:
        %s
    return [each for each in passes]

def far(passes, x=0):
    if passes is None:
%s
    for each in passes:
        x = each
        x += 1
""" % ("x = passes; " * SMALL_NUMBERS, "        x = passes\n" * 200)
# Functions that the others call, and that are measured in them.
CALLED = ("nothing", "less", "climb", "numbers", "squares", "one", "await_each", "await_sum", "Thing", "Around")
