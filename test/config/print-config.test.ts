import { afterAll, expect, test } from 'bun:test'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseJson } from '#lib/json.ts'
import { inheritedEnvironment, stopProcesses, temporaryFolder } from '#test/support/process.ts'

afterAll(stopProcesses)

const program = join(import.meta.dir, '../../src/main.ts')
const secret = 'a-secret-for-tests-of-at-least-32-characters'

async function printConfig(
  environment: Record<string, string>,
  { args = [], cwd = temporaryFolder() }: { args?: string[]; cwd?: string } = {},
) {
  const child = Bun.spawn([process.execPath, program, 'config', ...args], {
    cwd,
    env: { ...inheritedEnvironment(), JWT_SECRET: secret, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stdout, stderr, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { stdout, stderr, exitCode }
}

test('the effective configuration is printed as JSON without secrets', async () => {
  const { stdout, exitCode } = await printConfig({ PORT: '9001' })
  expect(exitCode).toBe(0)
  expect(parseJson(stdout)).toMatchObject({ port: 9001, jwt: { secret: '[redacted]' } })
  expect(stdout).not.toContain(secret)
})

test('an unknown upstream API and an unknown engine kind are refused by name', async () => {
  const { stdout, stderr, exitCode } = await printConfig({
    SLUICE_UPSTREAM_URL: 'http://127.0.0.1:1',
    SLUICE_UPSTREAM_API: 'grpc',
    SLUICE_STT_URL: 'http://127.0.0.1:1',
    SLUICE_STT_ENGINE: 'whisper',
  })
  expect([exitCode, stdout]).toEqual([1, ''])
  expect(stderr.trimEnd().split('\n')).toEqual([
    'The configuration is not valid:',
    '  - upstream.0.api: expected one of chat, responses, messages, demo, llama, onnx, flite.',
    '  - engine.0.kind (SLUICE_STT_ENGINE): expected one of exec, vosk, openai-realtime, openai-transcriptions, deepgram, local, demo.',
  ])
})

test('config check validates a file as a start does, without starting', async () => {
  const cwd = temporaryFolder()
  const check = (...args: string[]) => printConfig({}, { args: ['check', ...args], cwd })
  expect(await check()).toMatchObject({
    exitCode: 0,
    stdout: 'There is no ./sluice.toml; the environment is valid.\n',
  })
  writeFileSync(join(cwd, 'good.toml'), 'port = 1')
  expect(await check('good.toml')).toMatchObject({ exitCode: 0, stdout: 'good.toml is valid.\n' })
  writeFileSync(join(cwd, 'sluice.toml'), '[queue]\nwait_max = 1')
  const refused = await check()
  expect(refused).toMatchObject({ exitCode: 1, stdout: '' })
  expect(refused.stderr).toContain('queue.wait_max: unknown key; did you mean wait_max_ms?')
  const missing = await check('gone.toml')
  expect(missing).toMatchObject({ exitCode: 1, stdout: '' })
  expect(missing.stderr).toContain('no such file: gone.toml')
  expect(readdirSync(cwd).toSorted()).toEqual(['good.toml', 'sluice.toml'])
})
