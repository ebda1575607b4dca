* Prints an invoice: the printer takes its time
PARAGRAPH PRINT
FETCH amount = SELECT amount FROM orders WHERE number = :number
WAIT 0.003
