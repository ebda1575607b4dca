"""The system library: what interpose declares itself, searched last. A module for each kind of call.

Declarations for packages are read when one of them is imported.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from interpose.library import Intrinsic

# The modules here that declare something of the interpreter and its standard library.
STANDARD = ("databases", "screens", "files", "network", "processes", "waits", "served", "marks", "contexts", "imports")
# Packages, and the modules here that declare something of them.
PACKAGES = {
    **dict.fromkeys(("psycopg2", "psycopg", "asyncpg"), "postgresql"),
    **dict.fromkeys(("MySQLdb", "pymysql"), "mysql"),
    "redis": "redis",
    "confluent_kafka": "kafka",
    **dict.fromkeys(("requests", "urllib3", "httpcore", "httpx"), "http"),
    "aiohttp": "http web",
    **dict.fromkeys(("cheroot", "django", "fastapi", "flask", "gunicorn", "starlette", "tornado"), "web"),
    **dict.fromkeys(("uvicorn", "waitress"), "web"),
    **dict.fromkeys(("billiard", "dramatiq", "rq"), "tasks"),
    **dict.fromkeys(("celery", "kombu"), "tasks rabbitmq"),
    **dict.fromkeys(("amqp", "pika"), "rabbitmq"),
    **dict.fromkeys(("ddtrace", "opentelemetry"), "tracers"),
    **dict.fromkeys(("click", "prompt_toolkit", "rich"), "terminals"),
    "aiofiles": "threaded",
    "gevent": "greenlets web",
    "grpc": "grpc",
    "uvloop": "loops",
    "trio": "nurseries",
}


def standard() -> "list[Intrinsic]":
    """What is declared of the interpreter and its standard library."""
    return _declared_in(STANDARD)


def of_packages(packages: "Iterable[str]") -> "list[Intrinsic]":
    """The declarations for the packages, and for packages declared together with them."""
    return _declared_in(dict.fromkeys([module for package in packages for module in PACKAGES[package].split()]))


def _declared_in(modules: "Iterable[str]") -> "list[Intrinsic]":
    found: list[Intrinsic] = []
    for module in modules:
        if module not in globals():  # where it stands once it was read
            __import__(f"{__name__}.{module}")
        found += globals()[module].INTRINSICS
    return found


def every() -> "list[Intrinsic]":
    """All that is declared."""
    return [*standard(), *of_packages(PACKAGES)]


def forget() -> None:
    """Have all that was read be as it was declared: the next recording begins with it."""
    for module in list(globals().values()):
        for each in getattr(module, "INTRINSICS", ()):
            each.be_as_declared()
