import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Rules of the sources that keep whole classes of holes out. A new exception belongs in these lists. */

const root = join(import.meta.dir, '../..')
const sources = ['src', 'db']
  .flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts'))
      .map((path) => `${folder}/${path}`),
  )
  .map((path) => ({ path, text: withoutComments(readFileSync(join(root, path), 'utf8')) }))

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '')
}

const filesWith = (pattern: RegExp) =>
  sources.filter(({ text }) => pattern.test(text)).map(({ path }) => path)

test('SQL is made from text only where the text is our own', () => {
  // Names of columns and tables that the program itself declares, and its migrations.
  const builders = [
    'db/index-builds.ts',
    'db/json-rows.ts',
    'db/schema/usage.ts',
    'src/retrieval/collections/folder-store.ts',
    'src/retrieval/collections/store.ts',
    'src/retrieval/index/store.ts',
    'src/retrieval/reindex/file-store.ts',
    'src/retrieval/sql-store.ts',
    'src/usage/ledger-store.ts',
    'src/usage/usage-store.ts',
  ]
  expect(filesWith(/\bsql\.raw\(|\.unsafe\(/).filter((path) => !allowed(path, builders))).toEqual(
    [],
  )
  // A statement is a tagged template, whose values are bound.
  expect(filesWith(/\.(?:execute|query)\(\s*(?:`|'[^']*'\s*\+)/)).toEqual([])
})

test('secrets are compared in constant time', () => {
  const comparisons = sources.flatMap(({ path, text }) =>
    [
      ...text.matchAll(
        /\b(\w*(?:secret|signature|token|hmac|digest|password|apiKey))\s*[!=]==\s*(\w+)/gi,
      ),
    ]
      .filter(([, , other = '']) => !/^(?:undefined|null|typeof|0)$/.test(other))
      .map(([found]) => `${path}: ${found}`),
  )
  // Hashes of public content, and the magic bytes of a file.
  const known = [
    'src/inference/image-size.ts: signature === ',
    'src/files/uploads/uploads.ts: partsDigest !== ',
    'src/installer/sources/oci.ts: digest !== found',
  ]
  expect(comparisons.filter((line) => !known.some((start) => line.startsWith(start)))).toEqual([])
  const timingSafe = filesWith(/\btimingSafeEqual\(/)
  for (const path of [
    'src/operations/metrics-access.ts',
    'src/sealing/sealer.ts',
    'src/speech/session/session.ts',
  ]) {
    expect(timingSafe).toContain(path)
  }
})

test('only programs of the operator are started, with their arguments as a list', () => {
  expect(
    filesWith(
      /\bexec(?:Sync|File|FileSync)\(|\bshell:\s*true|\bBun\.\$|import \{[^}]*\$[^}]*\} from 'bun'/,
    ),
  ).toEqual([])
})

test('no code is made from text', () => {
  expect(filesWith(/\beval\(|\bnew Function\(|\bvm\.|\bsetTimeout\(\s*['"`]/)).toEqual([])
})

function allowed(path: string, list: readonly string[]): boolean {
  return list.includes(path)
}
