import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { childEnvironment } from './config/load.ts'
import { bunCommand } from './lib/own-program.ts'
import { StartError } from './start-error.ts'

/** Installs packages into a folder of their own, so that no other package is changed. */
export async function installPackages(folder: string, packages: readonly string[]): Promise<void> {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n')
  // Optional dependencies are other platforms; install scripts would download and compile.
  const flags = ['--cwd', folder, '--exact', '--omit', 'optional', '--ignore-scripts']
  const { command, environment } = bunCommand('add', ...flags, ...packages)
  const child = Bun.spawn(command, {
    env: childEnvironment(environment),
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  const code = await child.exited
  if (code !== 0) throw new StartError(`The installation ended with code ${code}.`)
}
