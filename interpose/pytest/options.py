"""What pytest loads at every start: the options, and nothing else until one of them is given."""

import pytest

MARK = "max_calls"
OPTIONS = ("--interpose", "--interpose-coverage")
NOTHING_RUNS = ("help", "version", "collectonly", "markers", "showfixtures", "show_fixtures_per_test")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("interpose", "where tests spend their time (interpose)")
    group.addoption("--interpose", action="store_true", help="record the calls of the tests, each a transaction")
    group.addoption(
        "--interpose-coverage",
        action="store_true",
        help="record which statements ran, separately for each test",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{MARK}(kind=N, ...) or {MARK}(N, kind=, intrinsic=, detail=): with --interpose the test fails if it makes"
        " more calls of that kind, or that match these patterns",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Begin before any test is imported."""
    options = early_config.known_args_namespace
    asked = options.interpose or options.interpose_coverage
    if not asked or any(getattr(options, each, 0) for each in NOTHING_RUNS):
        return
    from interpose.pytest.plugin import Plugin
    from interpose.pytest.recording import begin

    failed = begin(options.interpose, options.interpose_coverage)
    early_config.pluginmanager.register(Plugin(failed, options.interpose), "interpose-recording")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Warn once in a session that limits are not checked. Filters that turn warnings into errors do not apply, because
    projects with limits could then not run their tests without --interpose."""
    config = session.config
    is_first = getattr(config, "workerinput", {}).get("workerid", "gw0") == "gw0"
    if config.option.interpose or config.option.interpose_coverage or not is_first:
        return
    limited = [item for item in session.items if item.get_closest_marker(MARK)]
    if limited:
        from interpose.pytest.limits import unchecked

        warning = unchecked(limited)
        config.hook.pytest_warning_recorded.call_historic(
            kwargs={"warning_message": warning, "when": "collect", "nodeid": "", "location": None}
        )
