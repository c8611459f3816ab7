import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathsOf, refusalOf, resolveSource } from './resolve-source.ts'

let folder: string
let models: string

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-local-')))
  models = join(folder, 'models')
  mkdirSync(join(models, 'one/weights'), { recursive: true })
  writeFileSync(join(models, 'one/config.json'), '{}')
  writeFileSync(join(models, 'one/weights/model.safetensors'), 'weights')
  writeFileSync(join(models, 'one/.hidden.json'), '{}')
  writeFileSync(join(models, 'one/train.py'), 'pass')
  writeFileSync(join(folder, 'secret.json'), '{}')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const source = (path: string) => ({ kind: 'local', path }) as const
const more = () => ({ settings: { localFolders: [join(folder, 'absent'), models] } })
const refuse = (path: string) => refusalOf(source(path), more())

test('a folder provides its model files', async () => {
  const { resolved } = await resolveSource(source(join(models, 'one')), more())
  expect(resolved).toEqual({
    revision: null,
    files: [
      {
        path: 'config.json',
        bytes: 2,
        sha256: null,
        from: { localPath: join(models, 'one/config.json') },
      },
      {
        path: 'weights/model.safetensors',
        bytes: 7,
        sha256: null,
        from: { localPath: join(models, 'one/weights/model.safetensors') },
      },
    ],
  })
})

test('a single file is resolved', async () => {
  const one = await resolveSource(source(join(models, 'one/config.json')), more())
  expect(pathsOf(one)).toEqual(['config.json'])
  expect(await refuse(join(models, 'one/train.py'))).toStartWith('unsafe_file_type')
})

test('links to files inside the allowed folders are followed, as in hub caches', async () => {
  mkdirSync(join(models, 'snapshot'))
  symlinkSync('../one/config.json', join(models, 'snapshot/config.json'))
  symlinkSync('../../secret.json', join(models, 'snapshot/secret.json'))
  symlinkSync('../one', join(models, 'snapshot/folder'))
  symlinkSync('nowhere', join(models, 'snapshot/gone.json'))
  const found = await resolveSource(source(join(models, 'snapshot')), more())
  expect(pathsOf(found)).toEqual(['config.json'])
})

test('paths outside the allowed folders are rejected, existing or not', async () => {
  symlinkSync(join(folder, 'secret.json'), join(models, 'link.json'))
  symlinkSync(folder, join(models, 'up'))
  for (const path of [
    join(folder, 'secret.json'),
    join(folder, 'nothing.json'),
    '/etc/hostname',
    `${models}/../secret.json`,
    `${models}-other/x.json`,
    join(models, 'link.json'),
    join(models, 'up/secret.json'),
  ]) {
    expect(await refuse(path)).toStartWith('host_not_allowed')
  }
  const none = await refusalOf(source(join(models, 'one')))
  expect(none).toStartWith('host_not_allowed')
})

test('missing, invalid and empty paths are reported', async () => {
  expect(await refuse(join(models, 'two'))).toStartWith('not_found')
  expect(await refuse('models/one')).toStartWith('bad_source')
  expect(await refuse(`${models}/a\0b`)).toStartWith('bad_source')
  mkdirSync(join(models, 'empty'))
  expect(await refuse(join(models, 'empty'))).toStartWith('no_files')
})
