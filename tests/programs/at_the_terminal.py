"""What rich, click and prompt_toolkit show and ask."""

import asyncio
import io
import os

import aiofiles
import click
import prompt_toolkit
import prompt_toolkit.input
import prompt_toolkit.output
import rich.console

console = rich.console.Console(file=io.StringIO())
console.print("[bold]salt[/bold]")  #: rich.console.Console.print
console.input("name", stream=io.StringIO("pepper\n"))  #: rich.console.Console.input & within rich.console.Console.print


click.echo("salt")  #: click.echo
click.prompt("name")  #: click.prompt
click.confirm("sure?")  #: click.confirm
click.pause("")  #: click.pause
try:
    click.getchar()  #: click.getchar error=...
except OSError:
    print("no terminal")


with prompt_toolkit.input.create_pipe_input() as typed:
    typed.send_text("pepper\noil\n")
    session = prompt_toolkit.PromptSession(input=typed, output=prompt_toolkit.output.DummyOutput())
    print(session.prompt("name"))  #: prompt_toolkit.PromptSession.prompt
    print(asyncio.run(session.prompt_async("name")))  #: prompt_toolkit.PromptSession.prompt_async


async def keep():
    async with aiofiles.open("kept", "w") as file:  #: within aiofiles.open detail=kept
        await file.write("salt")


asyncio.run(keep())
print(os.path.getsize("kept"))
