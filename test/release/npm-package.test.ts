import { afterAll, expect, test } from 'bun:test'
import { chmodSync, cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseJson } from '#lib/json.ts'
import manifest from '#package.json' with { type: 'json' }
import { inheritedEnvironment, stopProcesses, temporaryFolder } from '#test/support/process.ts'
import { releaseManifest } from '../../scripts/release-manifest.ts'

afterAll(stopProcesses)

const launcher = join(import.meta.dir, '../../scripts/npm-launcher.js')
const node = Bun.which('node') ?? ''

test('the manifest lists the launcher and no package but the MP3 decoder', () => {
  expect(parseJson(releaseManifest(manifest))).toEqual({
    name: 'sluice',
    version: manifest.version,
    description: manifest.description,
    license: 'MIT',
    private: true,
    type: 'module',
    bin: { sluice: 'bin/sluice.js' },
    files: ['bin', 'lib', 'LICENSE', 'README.md', 'THIRD_PARTY_NOTICES', 'CHANGELOG.md'],
    engines: { bun: '>=1.4.5' },
    optionalDependencies: { 'mpg123-decoder': '1.0.3' },
  })
})

/** Runs the launcher in Node, where `bun` has a version and each program prints its arguments. */
async function launch(bunVersion: string | null) {
  const folder = temporaryFolder()
  for (const name of ['bin', 'lib', 'tools']) mkdirSync(join(folder, name))
  cpSync(launcher, join(folder, 'bin/sluice.js'))
  writeFileSync(join(folder, 'package.json'), releaseManifest(manifest))
  const tool = (name: string, script: string) => {
    writeFileSync(join(folder, 'tools', name), `#!/bin/sh\n${script}\n`)
    chmodSync(join(folder, 'tools', name), 0o755)
  }
  const show = (name: string) => `echo "${name} $*"; exit 7`
  if (bunVersion !== null) {
    tool('bun', `[ "$1" = --version ] && echo ${bunVersion} && exit; ${show('bun')}`)
  }
  tool('npx', show('npx'))
  const child = Bun.spawn([node, join(folder, 'bin/sluice.js'), 'token', '--sub', 'me'], {
    env: { ...inheritedEnvironment(), PATH: join(folder, 'tools') },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stdout, code] = await Promise.all([child.stdout.text(), child.exited])
  return { stdout: stdout.trim().replace(folder, '.'), code }
}

test.skipIf(node === '').each([
  ['1.4.5', 'bun'],
  ['1.5.0', 'bun'],
  ['1.4.4', 'npx -y bun@1.4.5'],
  ['1.3.14', 'npx -y bun@1.4.5'],
  [null, 'npx -y bun@1.4.5'],
])('with Bun %s on the PATH, Node starts the program with %s', async (version, command) => {
  const started = { stdout: `${command} ./lib/main.js token --sub me`, code: 7 }
  expect(await launch(version)).toEqual(started)
})
