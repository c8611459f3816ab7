import { expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SaxesParser, type SaxesTagPlain } from 'saxes'

/** The chart command, on recorded results. */

const program = join(import.meta.dir, '../../bench/run.ts')
/** The maximum width of a character as a fraction of the font size. */
const charWidth = 0.62

type Text = { content: string; x: number; y: number; size: number; anchor: string; turned: boolean }
type Drawing = { source: string; tags: SaxesTagPlain[]; texts: Text[]; box: [number, number] }

function draw(results: Record<string, unknown>): Promise<{
  code: number
  said: string
  drawings: Map<string, Drawing>
}> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-charts-'))
  const from = join(folder, 'results')
  const to = join(folder, 'charts')
  const write = async () => {
    for (const [name, result] of Object.entries(results)) {
      await Bun.write(join(from, `${name}.json`), JSON.stringify(result))
    }
    writeFileSync(join(from, 'notes.txt'), 'no result')
    const child = Bun.spawn([process.execPath, program, 'charts', '--from', from, '--to', to], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const said = (await child.stdout.text()) + (await child.stderr.text())
    const code = await child.exited
    const names = code === 0 ? readdirSync(to) : []
    const drawings = names.map(
      (name) => [name, read(readFileSync(join(to, name), 'utf8'))] as const,
    )
    return { code, said, drawings: new Map(drawings) }
  }
  return write().finally(() => rmSync(folder, { recursive: true, force: true }))
}

/** Throws if it is not XML. */
function read(source: string): Drawing {
  const parser = new SaxesParser()
  const tags: SaxesTagPlain[] = []
  const texts: Text[] = []
  let open: SaxesTagPlain | null = null
  parser.on('error', (error) => {
    throw error
  })
  parser.on('opentag', (tag) => {
    tags.push(tag)
    open = tag
  })
  parser.on('text', (content) => {
    if (open?.name === 'text' && content.trim() !== '') texts.push(textOf(open, content))
  })
  parser.write(source).close()
  const [, , width = 0, height = 0] = String(tags[0]?.attributes['viewBox']).split(' ').map(Number)
  return { source, tags, texts, box: [width, height] }
}

function textOf({ attributes }: SaxesTagPlain, content: string): Text {
  const moved = /translate\(([\d.-]+) ([\d.-]+)\) rotate\(-90\)/.exec(
    String(attributes['transform']),
  )
  return {
    content,
    x: Number(moved?.[1] ?? attributes['x']),
    y: Number(moved?.[2] ?? attributes['y']),
    size: attributes['class'] === 'title' ? 16 : 13,
    anchor: String(attributes['text-anchor'] ?? 'start'),
    turned: moved !== null,
  }
}

/** The bounding box of a text: left, top, right, bottom. */
function placeOf({ content, x, y, size, anchor, turned }: Text): [number, number, number, number] {
  const width = content.length * size * charWidth
  const before = anchor === 'middle' ? width / 2 : anchor === 'end' ? width : 0
  if (turned) return [x - size, y - width / 2, x, y + width / 2]
  return [x - before, y - size, x - before + width, y]
}

function expectSound({ source, tags, texts, box: [width, height] }: Drawing): void {
  expect(source).not.toMatch(/NaN|Infinity|undefined|null/)
  expect(tags[0]?.attributes).toMatchObject({ role: 'img', 'aria-labelledby': 'title description' })
  const ids = tags.filter(({ name }) => name === 'title' || name === 'desc')
  expect(ids.map(({ attributes }) => attributes['id'])).toEqual(['title', 'description'])
  expect(texts.length).toBeGreaterThan(6)
  for (const text of texts) {
    const [left, top, right, bottom] = placeOf(text)
    expect(Math.min(left, top), text.content).toBeGreaterThanOrEqual(0)
    expect(right, text.content).toBeLessThanOrEqual(width)
    expect(bottom, text.content).toBeLessThanOrEqual(height)
  }
  for (const { attributes } of tags.filter(({ name }) => name === 'path')) {
    for (const [, x, y] of String(attributes['d']).matchAll(/[ML]([\d.-]+) ([\d.-]+)/g)) {
      expect(Number(x)).toBeWithin(0, width + 1)
      expect(Number(y)).toBeWithin(0, height + 1)
    }
  }
}

const eventsOf = (streams: number, target: string, cpuMs: number | null, round = 0) => ({
  round,
  target,
  upstream: 'chat',
  protocol: target === 'nginx' ? 'chat' : 'responses',
  load: { streams, tokensPerSecond: 50 },
  report: { window: { tokens: streams * 50, cpuMs } },
})

const events = {
  bench: 'events',
  results: [1, 100, 400, 1_000, 4_000].flatMap((streams) => [
    eventsOf(streams, 'nginx', streams * 0.4),
    eventsOf(streams, 'nginx', streams * 0.5, 1),
    eventsOf(streams, 'Sluice', streams * 0.7),
    eventsOf(streams, 'Sluice', null, 1),
  ]),
}
const memory = (bench: string, mebibytes: readonly number[]) => ({
  bench,
  memory: mebibytes.map((value, at) => ({ atMs: at * 10_000, bytes: value * 2 ** 20 })),
})

test('charts of results keep all marks inside the frame', async () => {
  const { code, drawings, said } = await draw({
    events,
    long: memory('long-streams', [208, 236.5, 231, 230]),
    soak: memory('soak', [0.01, 12_345.678, 9_000]),
    other: { bench: 'overhead', results: [] },
  })
  expect(said.split('\n').filter((line) => line !== '')).toHaveLength(3)
  expect(code).toBe(0)
  expect([...drawings.keys()].toSorted()).toEqual([
    'events-responses-chat.svg',
    'memory-long-streams.svg',
    'memory-soak.svg',
  ])
  for (const drawing of drawings.values()) expectSound(drawing)
  const chart = drawings.get('events-responses-chat.svg')
  const words = chart?.texts.map(({ content }) => content) ?? []
  for (const word of ['nginx', 'Sluice', 'CPU per event, µs', '1', '400', '4,000']) {
    expect(words).toContain(word)
  }
})

test('larger values are drawn higher, and missing values are omitted', async () => {
  const { drawings } = await draw({ events })
  const chart = drawings.get('events-responses-chat.svg')
  const heights = (line: string) =>
    chart?.tags
      .filter(({ attributes }) => attributes['class'] === line)
      .map(({ attributes }) => Number(attributes['cy'])) ?? []
  const [nginx, sluice] = [heights('m0'), heights('m1')]
  expect(nginx).toHaveLength(5)
  expect(sluice).toHaveLength(5)
  for (const [at, height] of sluice.entries()) expect(height).toBeLessThan(nginx[at] ?? 0)
  expect(new Set(sluice).size, 'the same cost is the same height').toBe(1)
})

test('a folder without drawable results is an error', async () => {
  const { code, said } = await draw({ other: { bench: 'overhead' }, broken: [1, 2] })
  expect(code).toBe(1)
  expect(said).toContain('holds no result that can be drawn')
})
