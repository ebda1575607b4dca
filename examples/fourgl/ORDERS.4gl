* Order entry: twelve orders, and an invoice for each third
SQL CREATE TABLE orders (number INTEGER, amount INTEGER)
LET number = 0
REPEAT 12
  LET number = number + 1
  PARAGRAPH ENTER
  SQL INSERT INTO orders VALUES (:number, :number * 10)
  PARAGRAPH CHECK
  FETCH owed = SELECT sum(amount) FROM orders
  LET rest = number % 3
  REPEAT 1 - (rest + 1) // 2
    CALL INVOICE
  END
END
PARAGRAPH REPORT
DISPLAY owed
