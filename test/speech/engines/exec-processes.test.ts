import { afterEach, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSession, tone } from '#test/support/engine-session.ts'
import { eventually } from '#test/support/eventually.ts'
import { childrenOf, isAlive, killProcess } from '#test/support/process.ts'
import { closeStubs, stubEngine } from '#test/support/stub-program/engine.ts'
import { writeAudio } from '#test/support/write-audio.ts'

const rate = 16_000
const folders: string[] = []

afterEach(async () => {
  await closeStubs()
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

test('a warm program is started in advance, serves one session and is replaced', async () => {
  const { startsFile, started } = recordStarts()
  const { engine } = stubEngine({ startsFile }, { warm: 1 })
  await eventually('one program is started', () => started().length === 1)
  const [first = 0] = started()

  const recorder = await openSession(engine)
  await eventually('the next program is started', () => started().length === 2)
  recorder.session.write(tone(500, rate))
  recorder.session.end()
  await recorder.waitFor('ended')
  await eventually('the program has exited', () => !isAlive(first))
  expect(isAlive(started()[1] ?? 0)).toBe(true)
  expect(started()).toHaveLength(2)
})

test('a warm program that exits is replaced and fails no session', async () => {
  const { startsFile, started } = recordStarts()
  const { engine, lines } = stubEngine({ startsFile }, { warm: 1 })
  await eventually('one program is started', () => started().length === 1)
  killProcess(started()[0])
  await eventually('another program is started', () => started().length === 2)

  expect(lines.filter((line) => line.includes('restarting later'))).toHaveLength(1)
  const recorder = await openSession(engine)
  recorder.session.end()
  await recorder.waitFor('ended')
})

test('programs that exit immediately are restarted with growing pauses', async () => {
  const { startsFile, started } = recordStarts()
  const { lines } = stubEngine({ startsFile, atStart: 'exit' }, { warm: 2 })
  const broken = () => lines.filter((line) => line.includes('restarting later'))
  await eventually('three pauses were logged', () => broken().length === 3)
  const pauses = broken().map((line): number => JSON.parse(line).pause_ms)
  expect(pauses[0]).toBeGreaterThanOrEqual(250)
  expect(pauses[1]).toBeGreaterThanOrEqual(500)
  expect(pauses[2]).toBeGreaterThanOrEqual(1_000)
  // Two per round; the third pause has not ended.
  expect(started().length).toBeLessThanOrEqual(6)
})

test('an aborted session stops its program and emits nothing more', async () => {
  const { startsFile, started } = recordStarts()
  const recorder = await openSession(stubEngine({ startsFile, msPerSecond: 200 }).engine)
  await writeAudio(recorder, tone(1_000, rate))
  recorder.session.abort()
  recorder.session.abort()
  const before = recorder.events.length
  await eventually('the program has exited', () => !isAlive(started()[0] ?? 0))
  expect(recorder.events).toHaveLength(before)
})

test('a program that does not exit when done or ignores SIGTERM is killed', async () => {
  const { startsFile, started } = recordStarts()
  const { engine } = stubEngine({ startsFile, ignoresTerm: true, atEnd: 'done-and-stay' })
  const recorder = await openSession(engine)
  recorder.session.end()
  await recorder.waitFor('ended')
  await eventually('the program has exited', () => !isAlive(started()[0] ?? 0))
})

test('the children of a program are stopped with it', async () => {
  const { startsFile, started } = recordStarts()
  const script = `sleep 1000 & echo $! >> ${startsFile}; echo '{"type":"ready"}'; wait`
  const { engine } = stubEngine({}, { command: ['sh', '-c', script] })
  const recorder = await openSession(engine)
  await eventually('the child is started', () => started().length === 1)
  recorder.session.abort()
  await eventually('the child has exited', () => !isAlive(started()[0] ?? 0))
})

test('closing the engine stops all programs, including those that ignore SIGTERM', async () => {
  const before = new Set(childrenOf(process.pid))
  const { startsFile, started } = recordStarts()
  const { engine } = stubEngine({ startsFile, ignoresTerm: true, atEnd: 'hang' }, { warm: 2 })
  await openSession(engine)
  await eventually('all programs are started', () => started().length === 3)
  await engine.close()
  expect(started().filter(isAlive)).toEqual([])
  expect(childrenOf(process.pid).filter((pid) => !before.has(pid))).toEqual([])
  const late = openSession(engine)
  expect(late).rejects.toMatchObject({ kind: 'unreachable' })
  await late.catch(() => {})
  expect(started()).toHaveLength(3)
})

test('the number of running programs is limited', async () => {
  const { engine } = stubEngine({ ignoresTerm: true, atEnd: 'hang' }, { sessionsMax: 1 })
  // The limit: one for the session, and eight for exiting ones. Exiting takes these two seconds.
  const opened = await Promise.all(Array.from({ length: 9 }, () => openSession(engine)))
  for (const { session } of opened) session.abort()
  const refused = openSession(engine)
  expect(refused).rejects.toMatchObject({ kind: 'busy' })
  await refused.catch(() => {})
  await eventually('programs have exited', () =>
    openSession(engine).then(
      () => true,
      () => false,
    ),
  )
})

test('a program that does not read its audio fails before memory fills up', async () => {
  const { engine } = stubEngine({ breaksAtMs: 0, breaksBy: 'stall' })
  const recorder = await openSession(engine)
  const minute = tone(60_000, rate)
  for (let minutes = 0; minutes < 6; minutes += 1) recorder.session.write(minute)
  await recorder.waitFor('failed')
  expect(recorder.of('failed')[0]?.error.message).toContain('does not read its audio')
})

test('a program environment contains only PATH', async () => {
  const folder = temporaryFolder()
  const file = join(folder, 'environment')
  const { engine } = stubEngine({}, { command: ['sh', '-c', `env > ${file}; exec cat`] })
  const opening = openSession(engine).catch(() => {})
  await eventually('the file is written', () => existsSync(file) && readFileSync(file).length > 0)
  const names = readFileSync(file, 'utf8').match(/^\w+(?==)/gm) ?? []
  // Variables that a shell adds.
  expect(names.filter((name) => !['PWD', 'SHLVL', '_', 'OLDPWD'].includes(name))).toEqual(['PATH'])
  await engine.close()
  await opening
})

test('stderr of a program is logged by line, up to a limit', async () => {
  const { engine, lines } = stubEngine({ errorLines: 500 })
  const recorder = await openSession(engine)
  recorder.session.end()
  await recorder.waitFor('ended')
  const written = () => lines.filter((line) => line.includes('speech engine stderr'))
  await eventually('the last line is logged', () => written().length === 101)
  expect(JSON.parse(written()[0] ?? '')).toMatchObject({ engine: 'stub', line: 'error line 0' })
  expect(written()[100]).toContain('further lines are not logged')
})

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-engine-'))
  folders.push(folder)
  return folder
}

/** A file to which every started program appends its process id. */
function recordStarts() {
  const startsFile = join(temporaryFolder(), 'starts')
  // The file exists before its first line.
  const started = () =>
    existsSync(startsFile)
      ? readFileSync(startsFile, 'utf8').split('\n').filter(Boolean).map(Number)
      : []
  return { startsFile, started }
}
