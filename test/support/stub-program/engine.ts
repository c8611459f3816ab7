import { programEnvironment } from '#config/load.ts'
import type { EngineConfig } from '#config/schema.ts'
import { createEngine } from '#speech/engines/registry.ts'
import { engineConfig, engineDeps } from '#test/support/engine-session.ts'
import { type StubScript, stubCommand } from './script.ts'

/** An `exec` engine of the stub program; `lines` are the logged lines. */
export function stubEngine(script: Partial<StubScript> = {}, given: Partial<EngineConfig> = {}) {
  const { log, lines } = engineDeps()
  const config = engineConfig({
    kind: 'exec',
    name: 'stub',
    framed: script.framed ?? false,
    command: stubCommand(script),
    ...given,
  })
  const engine = createEngine(config, { log, environment: programEnvironment() })
  engines.push(engine)
  return { engine, lines }
}

const engines: { close(): Promise<void> }[] = []

/** For `afterEach`: stops all programs of all stubs. */
export async function closeStubs(): Promise<void> {
  await Promise.all(engines.splice(0).map((engine) => engine.close()))
}
