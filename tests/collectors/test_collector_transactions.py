"""Names that data collectors give transactions, and how often a collector is called."""

from collecting import counts, failures, named, rows

from interpose.analysis.analysis import Analysis
from interpose.analysis.transactions.response_times import transactions

TRANSACTIONS = """
    @interpose.collector
    def name(area):
        area.transaction = getattr(sys.modules["__main__"], "doing", None)
"""


def test_a_transaction_stays_until_another_name_or_none(collected):
    done = collected(
        TRANSACTIONS,
        """
        doing = "first"
        probe("/probe/1")
        time.sleep(0.3)
        probe("/probe/2")
        doing = "second"
        probe("/probe/3")
        time.sleep(0.02)
        probe("/probe/4")
        doing = None
        probe("/probe/5")
        time.sleep(0.01)
        doing = ".batch"
        probe("/probe/6")
        """,
    )

    found = {row.name: row for row in transactions(Analysis(done.experiment)).rows}
    assert {name: row.sums.calls for name, row in found.items()} == {
        "first": 1,
        "second": 1,
        ".batch": 1,
        ".INIT": 1,
        ".IDLE": 1,
    }
    assert found["first"].response_ns >= 300e6
    assert found["second"].response_ns >= 20e6
    assert found[".IDLE"].response_ns >= 10e6
    assert [name for name, row in found.items() if row.is_named] == ["first", "second"]
    whole = {row["figure"]: row["value"] for row in rows(done, "session")}
    assert sum(row.sums.wall_ns for row in found.values()) == whole["run time (of all threads)"]


def test_a_name_that_is_too_long_is_cut_between_letters(collected):
    done = collected(
        """
        @interpose.collector
        def name(area):
            if area.function == "probe":
                area.transaction, area.section = "12" + "\u20ac" * 50, "1" + "\u00e9" * 100
        """,
        """
        probe("/probe/1")
        """,
    )

    founder = done.experiment.founder
    assert [founder.string(event.detail) for event in done.events("interpose.named")] == ["12" + "\u20ac" * 41]
    assert [function for _, _, function, _ in named(done)] == ["1" + "\u00e9" * 63]


def test_each_thread_has_the_name_that_its_own_calls_got(collected):
    done = collected(
        """
        @interpose.collector
        def name(area):
            if area.function == "probe":
                area.transaction = sys.modules["__main__"].threading.current_thread().name
        """,
        """
        def run():
            for number in range(20):
                probe(f"/probe/{number}")
                time.sleep(0.0005)
        threads = [threading.Thread(target=run, name=f"T{number}") for number in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        """,
    )

    assert {name: count for name, count in counts(done).items() if name[0] == "T"} == {
        "T0": 1,
        "T1": 1,
        "T2": 1,
        "T3": 1,
    }


def test_inside_of_a_transaction_that_is_known_it_is_named_and_the_one_around_stays(collected):
    done = collected(
        """
        @interpose.collector
        def name(area):
            if area.function == "probe":
                area.transaction = sys.modules["__main__"].doing
        """,
        """
        import interpose
        doing = "around"
        probe("/probe/1")
        with interpose.transaction("marked"):
            doing = "inside"
            probe("/probe/2")
        doing = "around"
        probe("/probe/3")
        """,
    )

    assert counts(done) == {"around": 2, "marked": 1, ".INIT": 1}


def test_a_request_that_is_served_is_named_by_what_was_called_in_it(collected):
    done = collected(
        """
        @interpose.collector
        def name(area):
            if area.function == "probe":
                area.transaction = sys.modules["__main__"].doing
        """,
        """
        import http.client, http.server
        class Shop(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                global doing
                doing = self.path.upper()
                if doing != "/PLAIN":
                    probe("/probe/1")
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()
            def log_message(self, *words):
                pass
        server = http.server.HTTPServer(("127.0.0.1", 0), Shop)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        for path in ("/pay", "/plain", "/pay", "/book"):
            connection = http.client.HTTPConnection(*server.server_address)
            connection.request("GET", path)
            connection.getresponse().read()
            connection.close()
        server.shutdown()
        thread.join()
        """,
    )

    found = counts(done)
    assert {name: found[name] for name in ("/PAY", "/BOOK", "GET /plain")} == {"/PAY": 2, "/BOOK": 1, "GET /plain": 1}


def test_one_per_transaction_is_called_where_transactions_begin_and_end(collected):
    done = collected(
        """
        @interpose.collector(per="transaction")
        def name(area):
            sys.modules["__main__"].seen.append(area.function)
        """,
        """
        import interpose
        seen = []
        def pay():
            with interpose.transaction("pay"):
                probe("/probe/1")
                probe("/probe/2")
        pay()
        pay()
        print(seen)
        """,
    )

    assert done.stdout == "['pay', 'pay']\n"


def test_one_per_site_is_called_once_for_each_place(collected):
    done = collected(
        """
        @interpose.collector(per="site")
        def name(area):
            if area.function == "probe":
                sys.modules["__main__"].seen.append(area.line)
                area.module, area.section, area.statement = "ORDERS", "PROBE", 7
        """,
        """
        seen = []
        for number in range(5):
            probe(f"/probe/{number}")
        print(len(seen))
        """,
    )

    assert done.stdout == "1\n"
    assert named(done) == [(f"/probe/{number}", "ORDERS", "PROBE", 7) for number in range(5)]


def test_the_identifier_is_in_the_session_data_once(collected):
    done = collected(
        """
        @interpose.collector
        def name(area):
            assert area.identifier == ""
            area.identifier = "Orders 9.2 " + "x" * 100
        """,
        """
        probe("/probe/1")
        probe("/probe/2")
        """,
    )

    shown = [row["shown"] for row in rows(done, "session") if row["figure"] in ("data collector", "subsystem")]
    assert shown == ["group:program  per event, for *", "Orders 9.2 " + "x" * 52]
    assert not failures(done)
