import { existsSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { freePort } from '#test/support/free-port.ts'
import type { RecordedProtocol } from '#test/support/recordings.ts'
import { writeTinyGguf } from '#test/support/tiny-gguf.ts'
import { type Conversation, tokensOf } from './conversations.ts'
import { templates } from './templates.ts'

/** Packages of the registry of Python, and what they serve. Versions are in `test/recordings`. */
const packages = { 'llama.cpp': 'xllamacpp==2026.10.11549', litellm: 'litellm[proxy]==1.98.0' }

export type ServerName = keyof typeof packages

export type Server = { readonly baseUrl: string; stop(): Promise<void> }

/** The first start of LiteLLM compiles a thousand modules. */
const startMsMax = 300_000

const modelName = 'tiny'

/**
 * How LiteLLM speaks to its upstream, and the protocols that this makes a difference for: `openai`
 * passes Responses on, and makes Messages of it; the others make both of chat completions.
 */
export const litellmProviders: Readonly<Record<string, readonly RecordedProtocol[]>> = {
  openai: ['chat-completions', 'responses', 'messages'],
  deepseek: ['responses'],
  hosted_vllm: ['messages'],
}

/** Installs the package in a folder of its own, and returns that folder's programs. */
export async function install(server: ServerName, folder: string): Promise<string> {
  const home = join(folder, server)
  const programs = join(home, 'bin')
  if (!existsSync(join(programs, 'installed'))) {
    await run(['python3', '-m', 'venv', home])
    await run([join(programs, 'pip'), 'install', '--quiet', packages[server]])
    writeFileSync(join(programs, 'installed'), '')
  }
  return programs
}

/** llama.cpp with a model that says what the conversation wants. */
export async function startLlamaServer(
  programs: string,
  folder: string,
  { name, says, template, port }: Conversation & { port: number },
): Promise<Server> {
  const file = join(folder, `${name}.gguf`)
  writeTinyGguf(file, {
    script: tokensOf(says),
    metadata: { 'tokenizer.chat_template': { type: 'string', value: templates[template] } },
  })
  const script = join(import.meta.dir, 'serve-model.py')
  return start([join(programs, 'python'), script, file, modelName, `${port}`], port, '/health')
}

/** LiteLLM in front of a chat completions server, with a model for each of its clients. */
export function startLitellm(programs: string, folder: string, upstreamPort: number) {
  const config = join(folder, 'litellm.yaml')
  const settings = {
    model_list: Object.keys(litellmProviders).map((provider) => ({
      model_name: provider,
      litellm_params: {
        model: `${provider}/${modelName}`,
        api_base: `http://127.0.0.1:${upstreamPort}/v1`,
        api_key: 'x',
      },
    })),
    router_settings: { num_retries: 0, disable_cooldowns: true },
  }
  writeFileSync(config, JSON.stringify(settings))
  const port = freePort()
  const options = ['--config', config, '--host', '127.0.0.1', '--port', `${port}`]
  return start([join(programs, 'litellm'), ...options], port, '/health/liveliness')
}

async function start(command: string[], port: number, healthPath: string): Promise<Server> {
  const child = Bun.spawn(command, {
    // LiteLLM imports modules from the folder above the one above this.
    cwd: dirname(command[0] ?? ''),
    env: { PATH: process.env['PATH'], LITELLM_LOCAL_MODEL_COST_MAP: 'True' },
    stdin: 'pipe',
    stdout: 'ignore',
    stderr: 'ignore',
  })
  const baseUrl = `http://127.0.0.1:${port}`
  const deadline = Date.now() + startMsMax
  while (!(await fetch(baseUrl + healthPath).catch(() => null))?.ok) {
    if (child.exitCode !== null) throw new Error(`${command[0]} ended with ${child.exitCode}`)
    if (Date.now() > deadline) throw new Error(`${command[0]} does not answer`)
    await Bun.sleep(100)
  }
  return {
    baseUrl,
    async stop() {
      child.kill('SIGKILL')
      await child.exited
    },
  }
}

async function run(command: string[]): Promise<void> {
  const code = await Bun.spawn(command, { stdout: 'inherit', stderr: 'inherit' }).exited
  if (code !== 0) throw new Error(`${command[0]} ended with ${code}`)
}
