import { afterAll, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  installCommand,
  packageFault,
  packageVersion,
  platformPackages,
} from '#inference/upstreams/llama/package.ts'

const root = mkdtempSync(join(tmpdir(), 'sluice-package-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

function folderWith(described: string): string {
  const folder = mkdtempSync(join(root, 'a-'))
  const at = join(folder, 'node_modules', 'node-llama-cpp')
  mkdirSync(at, { recursive: true })
  writeFileSync(join(at, 'package.json'), described)
  return folder
}

describe('the llama.cpp package', () => {
  test('must be installed in the exact version', () => {
    const version = JSON.stringify({ version: packageVersion })
    expect(packageFault(folderWith(version))).toBeNull()
  })

  test.each([
    ['nothing', join(root, 'none'), 'is not installed'],
    ['another version', folderWith('{"version":"2.0.0"}'), '2.0.0 is installed'],
    ['no version', folderWith('{}'), 'is not installed'],
    ['no JSON', folderWith('{'), 'is not installed'],
  ])('is missed where there is %s', (_name, folder, words) => {
    const fault = packageFault(folder)
    expect(fault?.kind).toBe('service_unavailable')
    expect(fault?.message).toContain(words)
    expect(fault?.message).toContain(installCommand)
    // Folders of the operator are not disclosed.
    expect(fault?.message).not.toContain(root)
  })

  test('lists platform packages, with more of them for GPUs', () => {
    const linux = { platform: 'linux', arch: 'x64' }
    expect(platformPackages(linux, false)).toEqual(['@node-llama-cpp/linux-x64'])
    expect(platformPackages(linux, true)).toContain('@node-llama-cpp/linux-x64-cuda')
    const mac = { platform: 'darwin', arch: 'arm64' }
    expect(platformPackages(mac, true)).toEqual(['@node-llama-cpp/mac-arm64-metal'])
    expect(platformPackages({ platform: 'aix', arch: 'ppc64' }, true)).toEqual([])
  })
})
