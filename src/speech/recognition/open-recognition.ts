import type { Config } from '#config/schema.ts'
import type { EnginePool } from '#speech/engines/pool.ts'
import type { Log } from '#telemetry/log.ts'
import { openEngineConnection } from './engine-connection.ts'
import { Recognition } from './live-recognition.ts'
import type { RecognitionOptions } from './recognition.ts'

export type RecognitionDeps = {
  readonly pool: EnginePool
  readonly settings: Config['speech']
  readonly log: Log
}

/** Resolves when an engine is ready to receive audio; rejects with an `EngineError`. */
export async function openRecognition(
  deps: RecognitionDeps,
  options: RecognitionOptions,
): Promise<Recognition> {
  const { language, engineName, vocabulary, endpointingMs } = options
  const request = {
    pool: deps.pool,
    choice: { language, engineName, avoid: null },
    options: { language, vocabulary, endpointingMs },
  }
  const connection = await openEngineConnection({ ...request, signal: options.signal })
  return new Recognition(connection, request, deps, options)
}
