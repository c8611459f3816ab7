import { AppError } from '#lib/errors.ts'
import { isRecord, parseJson } from '#lib/json.ts'
import type { EventBatch, GenerationEvent } from './events.ts'
import type { Generate, GenerationJob } from './generate.ts'

/**
 * Generations for a protocol in which the arguments of a call are an object, and not the text that a
 * model wrote. Where a complete call has anything else, the generation fails: clients would make it a
 * call without arguments, which may do what nobody asked for.
 */
export function withObjectArguments(generate: Generate): Generate {
  return (job) => generateObjects(generate, job)
}

async function* generateObjects(
  generate: Generate,
  job: GenerationJob,
): AsyncGenerator<EventBatch, void, void> {
  const findFault = createFaultFinder()
  let hasOutput = false
  let ending: EventBatch | null = null
  for await (const batch of generate(job)) {
    const fault = findFault(batch)
    if (fault !== null) {
      if (!hasOutput) throw fault.error
      ending = [...batch.slice(0, fault.at + 1), { type: 'error', error: fault.error }]
      break
    }
    yield batch
    hasOutput = true
  }
  // By now the upstream was told to end, before anybody may take their time with this.
  if (ending !== null) yield ending
}

type Fault = { at: number; error: AppError }

/** Reads one generation; finds the event at which a call has ended that cannot be told. */
function createFaultFinder(): (batch: EventBatch) => Fault | null {
  let name: string | null = null
  let text = ''
  const read = (event: GenerationEvent): AppError | null => {
    if (event.type === 'tool-call-start') {
      // What a custom tool is given is text, whatever it is.
      name = event.call.form === 'function' ? event.call.name : null
      text = ''
    } else if (event.type === 'tool-call-delta' && name !== null) {
      text += event.text
    } else if (event.type === 'tool-call-end' && name !== null && event.complete) {
      return isRecord(parseJson(text)) ? null : brokenCall(name)
    }
    return null
  }
  return (batch) => {
    for (const [at, event] of batch.entries()) {
      const error = read(event)
      if (error !== null) return { at, error }
    }
    return null
  }
}

function brokenCall(name: string): AppError {
  return new AppError(
    'upstream_invalid_answer',
    `The model called the tool ${name} with arguments that are no JSON object.`,
  )
}
