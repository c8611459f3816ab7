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
    const names = (platform: string, arch: string, withGpu: boolean) =>
      platformPackages({ platform, arch }, withGpu).map((name) => name.split('/'))
    const scoped = (...list: string[]) => list.map((name) => ['@node-llama-cpp', name])
    const systems = [
      ['linux', 'x64', 'linux-x64'],
      ['linux', 'arm64', 'linux-arm64'],
      ['linux', 'arm', 'linux-armv7l'],
      ['linux', 'riscv64', 'linux-riscv64'],
      ['darwin', 'arm64', 'mac-arm64-metal'],
      ['darwin', 'x64', 'mac-x64'],
      ['win32', 'x64', 'win-x64'],
      ['win32', 'arm64', 'win-arm64'],
    ] as const
    for (const [platform, arch, name] of systems) {
      expect(names(platform, arch, false)).toEqual(scoped(name))
      const gpus = arch !== 'x64' || platform === 'darwin' ? [] : ['cuda', 'cuda-ext', 'vulkan']
      const all = [name, ...gpus.map((gpu) => `${name}-${gpu}`)]
      expect(names(platform, arch, true)).toEqual(scoped(...all))
    }
    expect(names('aix', 'ppc64', true)).toEqual([])
  })
})
