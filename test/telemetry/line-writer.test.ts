import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLineWriter } from '#telemetry/line-writer.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-test-'))
afterAll(() => rmSync(folder, { recursive: true }))

const program = new URL('../support/write-lines.ts', import.meta.url).pathname

type Job = { turns: number; linesEach: number; chars: number }

/**
 * A process that writes to a real pipe. Bun reads the pipes of its children ahead, so another
 * process reads the end of this one: it begins when the file `begin` exists.
 */
function startWriting({ turns, linesEach, chars }: Job, begin = '/') {
  const command = `"$0" "$@" | { until [ -e "$BEGIN" ]; do sleep 0.02; done; exec cat; }`
  const child = Bun.spawn(
    ['sh', '-c', command, process.execPath, program, `${turns}`, `${linesEach}`, `${chars}`],
    { env: { PATH: process.env['PATH'], BEGIN: begin }, stdio: ['ignore', 'pipe', 'pipe'] },
  )
  const stderr = child.stderr.getReader()
  let said = ''
  return {
    text: () => new Response(child.stdout).text(),
    /** The next line of JSON that the process reports. */
    async report(): Promise<Record<string, number>> {
      while (!said.includes('\n')) {
        const { value, done } = await stderr.read()
        if (done) throw new Error(`it said no more than: ${said}`)
        said += new TextDecoder().decode(value)
      }
      const end = said.indexOf('\n')
      const line = said.slice(0, end)
      said = said.slice(end + 1)
      return JSON.parse(line)
    },
  }
}

const numbersOf = (text: string) =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => Number(line.split(' ')[0]))

test('every line arrives, in order, including the last ones', async () => {
  const text = await startWriting({ turns: 50, linesEach: 100, chars: 150 }).text()
  expect(numbersOf(text)).toEqual(Array.from({ length: 5_000 }, (_, index) => index))
  expect(text).toEndWith('\n')
})

test('a stalled reader blocks nothing; excess lines are dropped and counted', async () => {
  const begin = join(folder, 'begin')
  const writing = startWriting({ turns: 100, linesEach: 100, chars: 500 }, begin)
  // Nobody reads, and yet all turns of its event loop pass.
  expect(await writing.report()).toEqual({ written: 10_000, turns: 100 })
  writeFileSync(begin, '')
  const text = await writing.text()
  const { dropped = 0 } = await writing.report()
  const numbers = numbersOf(text)
  expect(dropped).toBeGreaterThan(0)
  expect(numbers.length + dropped).toBe(10_000)
  expect(numbers).toEqual(Array.from({ length: numbers.length }, (_, index) => index))
  const torn = text.split('\n').filter((line) => line !== '' && !/^\d+ x{500}$/.test(line))
  expect(torn).toEqual([])
})

test('a reader that never reads again does not keep the process alive', async () => {
  const begin = join(folder, 'begin-too-late')
  const writing = startWriting({ turns: 10, linesEach: 100, chars: 500 }, begin)
  expect(await writing.report()).toEqual({ written: 1_000, turns: 10 })
  expect(await writing.report()).toEqual({ dropped: 0 })
  writeFileSync(begin, '')
  await writing.text()
})

test('a closed reader does not end the writer', async () => {
  const child = Bun.spawn(
    ['sh', '-c', '"$0" "$@" | true', process.execPath, program, '50', '100', '500'],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  const said = await new Response(child.stderr).text()
  expect(said).toBe('{"written":5000,"turns":50}\n{"dropped":0}\n')
})

test('lines of one tick are written together, in writes that fit a pipe', async () => {
  const writes: string[] = []
  const writer = createLineWriter(
    {
      write(text, written) {
        writes.push(text)
        written()
      },
      on() {},
    },
    () => {},
  )
  for (let line = 0; line < 100; line++) writer.write(`${line} ${'x'.repeat(97)}`)
  await writer.flush()
  expect(writes.length).toBeLessThan(5)
  for (const text of writes) {
    expect(text.length).toBeLessThanOrEqual(4_096)
    expect(text).toEndWith('\n')
  }
  expect(numbersOf(writes.join(''))).toEqual(Array.from({ length: 100 }, (_, index) => index))
})
