"""Names every call."""

import interpose


@interpose.collector
def collect(area):
    if area.module == "__main__":
        area.module = "ORDERS"
        area.section = "SAVE"
        area.statement = area.line
        area.transaction = "PAY"
