#!/usr/bin/env node
// The command of the npm package, which npx and bunx run. Plain JavaScript for any version of Node:
// Sluice runs on Bun, so Node starts it with the Bun on the PATH, or with the one of the npm registry.
import { spawn, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const args = process.argv.slice(2)
const main = new URL('../lib/main.js', import.meta.url)
const needed = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
).engines.bun.replace('>=', '')

if (process.versions.bun !== undefined) await import(main.href)
else start([...bunCommand(), fileURLToPath(main), ...args])

function bunCommand() {
  const { stdout } = spawnSync('bun', ['--version'], { encoding: 'utf8' })
  return isRecent(stdout) ? ['bun'] : ['npx', '-y', `bun@${needed}`]
}

function isRecent(version) {
  const found = (/^\d+\.\d+\.\d+/.exec(version ?? '') ?? ['0.0.0'])[0].split('.').map(Number)
  const wanted = needed.split('.').map(Number)
  const at = found.findIndex((number, index) => number !== wanted[index])
  return at === -1 || found[at] > wanted[at]
}

function start(command) {
  const child = spawn(command[0], command.slice(1), { stdio: 'inherit' })
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) {
    process.on(signal, () => child.kill(signal))
  }
  child.on('error', (error) => {
    process.stderr.write(
      `Sluice runs on Bun ${needed} or later, which cannot be started: ${error.message}\n`,
    )
    process.exitCode = 1
  })
  child.on('exit', (code) => {
    process.exitCode = code ?? 1
  })
}
