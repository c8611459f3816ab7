import { afterEach, beforeEach, expect, test } from 'bun:test'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Commitment, commit, isComplete } from '#installer/commit.ts'
import { createLayout, type Layout } from '#installer/layout.ts'
import { createLibrary } from '#installer/library.ts'
import { quietLog } from '#test/support/quiet-log.ts'
import { sha256Of } from './installer-fixture.ts'

let folder: string
let layout: Layout

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-models-'))
  layout = createLayout(folder)
})
afterEach(async () => {
  await layout.deleted()
  rmSync(folder, { recursive: true, force: true })
})

const now = () => new Date()

/** Two downloaded files, one of them in a folder. */
function arrived(text: string, version: string = crypto.randomUUID()): Commitment {
  mkdirSync(layout.partial('org/model'), { recursive: true })
  const files = ['model.gguf', 'deep/er/config.json'].map((path, index) => {
    const content = `${text} of ${path}`
    const part = `part-${index}`
    writeFileSync(join(layout.partial('org/model'), part), content)
    writeFileSync(join(layout.partial('org/model'), `${part}.state`), '{}')
    const bytes = content.length
    return {
      path,
      part,
      bytesTotal: bytes,
      bytesCompleted: bytes,
      status: 'completed' as const,
      sha256: sha256Of(Buffer.from(content)),
      isVerified: true,
    }
  })
  return { version, model: 'org/model', source: 'hub:org/model@main', revision: text, files }
}

/** The installed files as a user of the model reads them. */
async function contents(): Promise<string[]> {
  const library = createLibrary(layout, quietLog)
  const [model] = await library.list()
  if (model === undefined) return []
  return Promise.all(model.files.map((file) => Bun.file(library.pathOf(model, file)).text()))
}

const whole = (text: string) => [`${text} of model.gguf`, `${text} of deep/er/config.json`]

test('downloaded files become the model, and everything else is deleted', async () => {
  await commit(layout, arrived('first'), now)
  expect(await contents()).toEqual(whole('first'))
  const next = arrived('second')
  await commit(layout, next, now)
  expect(await contents()).toEqual(whole('second'))
  expect(readdirSync(layout.model('org/model')).toSorted()).toEqual([next.version, 'model.json'])
  expect(existsSync(layout.partial('org/model'))).toBe(false)
})

test('a commit interrupted at any step leaves the old or the new model, and can be repeated', async () => {
  await commit(layout, arrived('old'), now)
  const next = arrived('new')
  const home = layout.version('org/model', next.version)
  const steps = [
    () => mkdirSync(join(home, 'deep/er'), { recursive: true }),
    () => renameSync(join(layout.partial('org/model'), 'part-0'), join(home, 'model.gguf')),
    () =>
      renameSync(join(layout.partial('org/model'), 'part-1'), join(home, 'deep/er/config.json')),
    () => writeFileSync(`${layout.record('org/model')}.new`, '{"half":'),
  ]
  for (const step of steps) {
    step()
    expect(await contents()).toEqual(whole('old'))
    expect(await isComplete(layout, next)).toBe(true)
  }
  await commit(layout, next, now)
  expect(await contents()).toEqual(whole('new'))
  // A worker that died before recording the commit repeats it.
  await commit(layout, next, now)
  expect(await contents()).toEqual(whole('new'))
  expect(readdirSync(layout.model('org/model')).toSorted()).toEqual([next.version, 'model.json'])
})

test('files of another machine are not complete', async () => {
  const next = arrived('new')
  rmSync(join(layout.partial('org/model'), 'part-1'))
  expect(await isComplete(layout, next)).toBe(false)
})
