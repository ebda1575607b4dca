"""A chat server: it stores messages by sqlite3, and checks passwords, in coroutines."""

import asyncio
import hashlib
import sqlite3

database = sqlite3.connect("chat.db")


async def store(text):
    many = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 300000) select max(i) from n"
    database.execute(many).fetchone()  # stands for a slow statement
    await asyncio.sleep(0.01)


async def login(name):
    await asyncio.sleep(0.01)
    return hashlib.pbkdf2_hmac("sha256", name.encode(), b"salt", 300_000)


async def client(name):
    await login(name)
    for number in range(4):
        await store(f"{name}: message {number}")


async def main():
    await asyncio.gather(*(client(f"client {n}") for n in range(9)))


asyncio.run(main())
