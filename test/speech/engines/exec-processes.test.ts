import { afterEach, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSession, tone } from '#test/support/engine-session.ts'
import { eventually } from '#test/support/eventually.ts'
import { feedAudio } from '#test/support/feed-audio.ts'
import { childrenOf, isAlive, killProcess } from '#test/support/process.ts'
import { closeStubs, stubEngine } from '#test/support/stub-program/engine.ts'

const rate = 16_000
const folders: string[] = []

afterEach(async () => {
  await closeStubs()
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

test('a program waits ready before anybody asks, serves one session, and is replaced', async () => {
  const { startsFile, started } = record()
  const { engine } = stubEngine({ startsFile }, { warm: 1 })
  await eventually('one is started', () => started().length === 1)
  const [first = 0] = started()

  const heard = await openSession(engine)
  await eventually('the next one is started', () => started().length === 2)
  heard.session.write(tone(500, rate))
  heard.session.end()
  await heard.told('ended')
  await eventually('the one that served is gone', () => !isAlive(first))
  expect(isAlive(started()[1] ?? 0)).toBe(true)
  expect(started()).toHaveLength(2)
})

test('a program that breaks while it waits is replaced, and costs no session', async () => {
  const { startsFile, started } = record()
  const { engine, lines } = stubEngine({ startsFile }, { warm: 1 })
  await eventually('one is started', () => started().length === 1)
  killProcess(started()[0])
  await eventually('another one is started', () => started().length === 2)

  expect(lines.filter((line) => line.includes('broke and is replaced'))).toHaveLength(1)
  const heard = await openSession(engine)
  heard.session.end()
  await heard.told('ended')
})

test('programs that break at once are started with longer and longer rests', async () => {
  const { startsFile, started } = record()
  const { lines } = stubEngine({ startsFile, atStart: 'exit' }, { warm: 2 })
  const broken = () => lines.filter((line) => line.includes('broke and is replaced'))
  await eventually('three rests were taken', () => broken().length === 3)
  const pauses = broken().map((line): number => JSON.parse(line).pause_ms)
  expect(pauses[0]).toBeGreaterThanOrEqual(250)
  expect(pauses[1]).toBeGreaterThanOrEqual(500)
  expect(pauses[2]).toBeGreaterThanOrEqual(1_000)
  // Two of each round, the rest of the third not being over.
  expect(started().length).toBeLessThanOrEqual(6)
})

test('an aborted session ends its program at once and says nothing more', async () => {
  const { startsFile, started } = record()
  const heard = await openSession(stubEngine({ startsFile, msPerSecond: 200 }).engine)
  await feedAudio(heard, tone(1_000, rate))
  heard.session.abort()
  heard.session.abort()
  const said = heard.events.length
  await eventually('it is gone', () => !isAlive(started()[0] ?? 0))
  expect(heard.events).toHaveLength(said)
})

test('a program that stays when it is done, or does not heed the signal, is killed', async () => {
  const { startsFile, started } = record()
  const { engine } = stubEngine({ startsFile, ignoresTerm: true, atEnd: 'done-and-stay' })
  const heard = await openSession(engine)
  heard.session.end()
  await heard.told('ended')
  await eventually('it is gone', () => !isAlive(started()[0] ?? 0))
})

test('nothing is left once the engine is closed, not even what does not heed the signal', async () => {
  const before = new Set(childrenOf(process.pid))
  const { startsFile, started } = record()
  const { engine } = stubEngine({ startsFile, ignoresTerm: true, atEnd: 'hang' }, { warm: 2 })
  await openSession(engine)
  await eventually('all are started', () => started().length === 3)
  await engine.close()
  expect(started().filter(isAlive)).toEqual([])
  expect(childrenOf(process.pid).filter((pid) => !before.has(pid))).toEqual([])
  const late = openSession(engine)
  expect(late).rejects.toMatchObject({ kind: 'unreachable' })
  await late.catch(() => {})
  expect(started()).toHaveLength(3)
})

test('no more programs run at once than there are places', async () => {
  const { engine } = stubEngine({ ignoresTerm: true, atEnd: 'hang' }, { sessionsMax: 1 })
  // Each leaves a program behind that takes two seconds to be gone.
  let refusal: unknown = null
  for (let times = 0; times < 12 && refusal === null; times += 1) {
    const opening = await openSession(engine).catch((error: unknown) => {
      refusal = error
    })
    opening?.session.abort()
  }
  expect(refusal).toMatchObject({ kind: 'busy' })
})

test('a program that takes no audio is given up before memory is', async () => {
  const { engine } = stubEngine({ breaksAtMs: 0, breaksBy: 'stall' })
  const heard = await openSession(engine)
  const minute = tone(60_000, rate)
  for (let minutes = 0; minutes < 6; minutes += 1) heard.session.write(minute)
  await heard.told('failed')
  expect(heard.of('failed')[0]?.error.message).toContain('does not take its audio')
})

test('a program finds a path in its environment, and nothing else of ours', async () => {
  const folder = temporaryFolder()
  const file = join(folder, 'environment')
  const { engine } = stubEngine({}, { command: ['sh', '-c', `env > ${file}; exec cat`] })
  const opening = openSession(engine).catch(() => {})
  await eventually('it has written', () => existsSync(file) && readFileSync(file).length > 0)
  const names = readFileSync(file, 'utf8').match(/^\w+(?==)/gm) ?? []
  // What a shell adds by itself.
  expect(names.filter((name) => !['PWD', 'SHLVL', '_', 'OLDPWD'].includes(name))).toEqual(['PATH'])
  await engine.close()
  await opening
})

test('what a program writes to its error output is logged line by line, and not without end', async () => {
  const { engine, lines } = stubEngine({ errorLines: 500 })
  const heard = await openSession(engine)
  heard.session.end()
  await heard.told('ended')
  const written = () => lines.filter((line) => line.includes('wrote to its error output'))
  await eventually('the last line is there', () => written().length === 101)
  expect(JSON.parse(written()[0] ?? '')).toMatchObject({ engine: 'stub', line: 'error line 0' })
  expect(written()[100]).toContain('more than may be logged')
})

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-engine-'))
  folders.push(folder)
  return folder
}

/** A file to which every program that starts adds its process id. */
function record() {
  const startsFile = join(temporaryFolder(), 'starts')
  // The file is there before its first line is.
  const started = () =>
    existsSync(startsFile)
      ? readFileSync(startsFile, 'utf8').split('\n').filter(Boolean).map(Number)
      : []
  return { startsFile, started }
}
