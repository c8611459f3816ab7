import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfig } from '#config/load.ts'
import type { EventBatch, GenerationEvent } from '#inference/events.ts'
import type { LocalModel } from '#inference/local-models/local-model.ts'
import type { GenerationRequest } from '#inference/request.ts'
import type { AdapterContext } from '#inference/upstream.ts'
import { createLlama, type Llama, type LlamaSettings } from '#inference/upstreams/llama/adapter.ts'
import { collectEvents, makeContext, makeRequest } from './generation.ts'
import { childrenOf, isAlive } from './process.ts'
import { modelLoadMs } from './time-limits.ts'
import { type TinyGguf, writeTinyGguf } from './tiny-gguf.ts'

/**
 * The folder of node-llama-cpp, as installed by `.ci/llama` or `bun run llama:install`. Tests that
 * run a model are skipped without it.
 */
export const llamaPackage = process.env['SLUICE_TEST_LLAMA_PACKAGE']
export const lacksLlama = llamaPackage === undefined

if (lacksLlama) console.warn('SLUICE_TEST_LLAMA_PACKAGE names no folder: no model is run')

/** One thread, so that models do not block each other on a busy machine. */
export const quietSettings = { threads: 1, gpu: false, loadMs: modelLoadMs }

export type LlamaWorld = {
  readonly llama: Llama
  readonly folder: string
  /** The log lines. */
  readonly lines: readonly { message: string; fields: Readonly<Record<string, unknown>> }[]
  logged(message: string): number
  /** Installs a model, or replaces it. */
  install(name: string, file?: TinyGguf | string): LocalModel
  uninstall(name: string): void
  /** The running model processes. */
  processes(): number[]
  generate(given: Asked): AsyncIterable<EventBatch>
  ask(given: Asked): Promise<Answer>
  stop(): Promise<void>
}

type Asked = Partial<GenerationRequest> & {
  name?: string
  maxTokens?: number
  signal?: AbortSignal
}

type Answer = Awaited<ReturnType<typeof collectEvents>> & { text: string }

/** The adapter with an installed model `tiny`, whose output never ends by itself. */
export function startLlama(settings: Partial<LlamaSettings> = {}): LlamaWorld {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-llama-'))
  const installed = new Map<string, LocalModel>()
  const lines: { message: string; fields: Readonly<Record<string, unknown>> }[] = []
  const note = (message: string, fields: Readonly<Record<string, unknown>> = {}) => {
    lines.push({ message, fields })
  }
  const llama = createLlama({
    models: async () => [...installed.values()],
    settings: {
      ...loadConfig({}).llama,
      ...quietSettings,
      seed: 7,
      packageFolder: llamaPackage ?? '/nowhere',
      ...settings,
    },
    environment: { PATH: process.env['PATH'] },
    log: { info: note, warn: note, error: note },
  })
  const before = new Set(childrenOf(process.pid))
  const install = (name: string, file: TinyGguf | string = {}) => {
    const path = typeof file === 'string' ? file : join(folder, `${name.replaceAll('/', '-')}.gguf`)
    if (typeof file !== 'string') writeTinyGguf(path, file)
    const model = { name, installedAs: name, path, bytes: statSync(path).size }
    installed.set(name, model)
    return model
  }
  install('tiny', endless)
  const generate = ({ name = 'tiny', signal, maxTokens, ...given }: Asked) => {
    const { sampling } = makeRequest()
    const limited = { ...sampling, ...(maxTokens ? { maxOutputTokens: maxTokens } : {}) }
    const context: Partial<AdapterContext> = { model: name, ...(signal ? { signal } : {}) }
    return llama.generate(makeRequest({ sampling: limited, ...given }), makeContext(context))
  }
  return {
    llama,
    folder,
    lines,
    install,
    generate,
    logged: (message) => lines.filter((line) => line.message === message).length,
    uninstall: (name) => installed.delete(name),
    processes: () => childrenOf(process.pid).filter((pid) => !before.has(pid) && isAlive(pid)),
    async ask(given) {
      const answer = await collectEvents(generate(given))
      return { ...answer, text: textOf(answer.events) }
    },
    async stop() {
      await llama.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** It generates until it is stopped or its context is full. */
export const endless: TinyGguf = { endBias: -50 }

export function textOf(events: readonly GenerationEvent[]): string {
  return events.map((event) => (event.type === 'text-delta' ? event.text : '')).join('')
}

export function finishOf(events: readonly GenerationEvent[]) {
  return events.find((event) => event.type === 'finish')
}
