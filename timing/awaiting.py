"""Wrappers that are coroutine functions: the same rules as for others, kept while they are awaited.

Imported where the first such wrapper is called.
"""


async def awaited(running, following, wrapper, arguments, keywords, leave):
    """What a wrapper gives; what the original gave where the wrapper fails."""
    result = failure = None
    token = running.enter()
    try:
        result = await wrapper
    except BaseException as raised:
        failure = raised
    leave(token)
    if not running.settles(following, result, failure):
        return result
    if not following.called:
        return await following(*arguments, **keywords)
    if following.raised is not None:
        raise following.raised
    return following.result


async def kept(following, original, enter, leave):
    """The original's outcome, which is kept for when the wrapper fails."""
    token = enter()
    try:
        following.result = await original
    except BaseException as raised:
        following.raised = raised
        raise
    finally:
        leave(token)
    return following.result
