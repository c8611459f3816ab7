import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'bun'
import { buildConsole } from '../../scripts/build-console.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-console-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** The limit of the project is 150 KB. */
const firstLoadBytesMax = 50_000
const pageBytesMax = 20_000

type Manifest = { files: { path: string; bytes: number; firstLoad: boolean }[] }

test('the first load is small, each page is loaded for itself, and nothing is inline', async () => {
  await buildConsole(folder)
  const read = (path: string) => readFileSync(join(folder, path))
  const { files }: Manifest = JSON.parse(read('manifest.json').toString())
  const sizeOf = (path: string) => gzipSync(read(path)).length
  const first = files.filter(({ firstLoad }) => firstLoad)
  const total = first.reduce((sum, { path }) => sum + sizeOf(path), 0)
  expect(first.map(({ path }) => path)).toContain('index.html')
  expect(total).toBeLessThan(firstLoadBytesMax)
  const pages = files.filter(({ path }) => /-page-\w+\.js$/.test(path))
  const entries = readFileSync(new URL('../../console/src/shell/pages.ts', import.meta.url), 'utf8')
  expect(pages.length).toBe(entries.split('load: ').length - 2)
  for (const { path, firstLoad } of pages) {
    expect(firstLoad, path).toBe(false)
    expect(sizeOf(path), path).toBeLessThan(pageBytesMax)
  }
  const html = read('index.html').toString()
  expect(html).not.toMatch(/<script(?![^>]*src=)|<style|style=|onload=/)
  expect(html).not.toMatch(/https?:\/\//)
})
