import { openEngineConnection } from './engine-connection.ts'
import { Recognition } from './live-recognition.ts'
import type { RecognitionDeps, RecognitionOptions } from './recognition.ts'

/** Resolves when an engine is ready to receive audio; rejects with an `EngineError`. */
export async function openRecognition(
  deps: RecognitionDeps,
  options: RecognitionOptions,
): Promise<Recognition> {
  const { language, engineName, vocabulary, endpointingMs, signal } = options
  const request = {
    pool: deps.pool,
    choice: { language, engineName, avoid: null },
    options: { language, vocabulary, endpointingMs },
  }
  const connection = await openEngineConnection(request, signal)
  return new Recognition(connection, request, deps, options)
}
