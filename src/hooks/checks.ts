import type { GenerationJob } from '#inference/inference.ts'
import { followSignal } from '#lib/deadline.ts'
import { AppError } from '#lib/errors.ts'
import { requestFields } from '#lib/request-context.ts'
import { withTimeLimit } from '#lib/time-limit.ts'
import type { Log } from '#telemetry/log.ts'
import type { Check, Checks, Hook, HookCall, HookText, Verdict } from './hook.ts'

/** A hook of the configuration. */
export type LoadedHook = Hook & {
  readonly name: string
  readonly deadlineMs: number
  readonly heldCharsMax: number
  applies(job: GenerationJob): boolean
}

type Stage = keyof Checks
type Outcome = 'allowed' | 'changed' | 'refused' | 'failed'

export type RunChecksDeps = {
  readonly log: Pick<Log, 'info' | 'warn'>
  readonly onChecked: (check: {
    readonly hook: string
    readonly stage: Stage
    readonly outcome: Outcome
    readonly ms: number
  }) => void
}

/** The checks of all hooks that apply to a generation. */
export type ChecksRun = {
  /** The least of the hooks. */
  readonly heldCharsMax: number
  has(stage: Stage): boolean
  /** The texts as the hooks want them; null: unchanged. Throws for what one refuses or cannot check. */
  run(stage: Stage, texts: readonly HookText[]): Promise<readonly string[] | null>
  /** The result of putting texts of hooks in their places. Throws if they do not fit there. */
  replacing<T>(stage: Stage, replace: () => T): T
}

type Begun = { readonly hook: LoadedHook; readonly checks: Checks }

/** Begins the hooks with the first pull of the generation. */
export function createChecks(
  hooks: readonly LoadedHook[],
  job: GenerationJob,
  deps: RunChecksDeps,
): () => ChecksRun {
  return () => {
    const failed = (name: string, stage: string, error: unknown) => {
      deps.log.warn('hook failed', { hook: name, stage, ...requestFields(job.context), error })
      return new AppError('content_check_failed', `The check "${name}" failed; retry.`, {
        cause: error,
      })
    }
    const call = callOf(job)
    const begun = hooks.map((hook): Begun => {
      try {
        return { hook, checks: hook.begin(call) }
      } catch (error) {
        throw failed(hook.name, 'begin', error)
      }
    })

    /** One check of one hook. */
    async function runOne(
      { hook, check }: { hook: LoadedHook; check: Check },
      stage: Stage,
      texts: readonly HookText[],
    ) {
      const { context } = job
      const beganAt = performance.now()
      const report = (outcome: Outcome) =>
        deps.onChecked({ hook: hook.name, stage, outcome, ms: performance.now() - beganAt })
      let verdict: Verdict
      try {
        verdict = validate(await limited(check, texts, { hook, signal: context.signal }), texts)
      } catch (error) {
        if (context.signal.aborted) throw cancelled(context.signal)
        report('failed')
        throw failed(hook.name, stage, error)
      }
      if (verdict === undefined) report('allowed')
      else if ('texts' in verdict) report('changed')
      else {
        report('refused')
        deps.log.info('hook refused', { hook: hook.name, stage, ...requestFields(context) })
        throw new AppError('content_refused', verdict.refuse)
      }
      return verdict
    }

    return {
      heldCharsMax: Math.min(...hooks.map(({ heldCharsMax }) => heldCharsMax)),
      has: (stage) => begun.some(({ checks }) => checks[stage] !== undefined),
      async run(stage, given) {
        let texts = given
        for (const { hook, checks } of begun) {
          const check = checks[stage]
          if (check === undefined) continue
          const verdict = await runOne({ hook, check }, stage, texts)
          if (verdict === undefined) continue
          texts = texts.map(({ kind, text }, at) => ({ kind, text: verdict.texts[at] ?? text }))
        }
        return texts === given ? null : texts.map(({ text }) => text)
      },
      replacing(stage, replace) {
        try {
          return replace()
        } catch (error) {
          throw failed(begun.map(({ hook }) => hook.name).join(', '), stage, error)
        }
      },
    }
  }
}

/** The verdict, or a failure at the deadline of the hook or when the client disconnects. */
async function limited(
  check: Check,
  texts: readonly HookText[],
  { hook, signal }: { hook: LoadedHook; signal: AbortSignal },
): Promise<Verdict> {
  const { controller, release } = followSignal(signal)
  const aborted = new Promise<never>((_, reject) => {
    controller.signal.addEventListener('abort', () => reject(controller.signal.reason), {
      once: true,
    })
  })
  try {
    controller.signal.throwIfAborted()
    const verdict = check(texts, controller.signal)
    if (!(verdict instanceof Promise)) return verdict
    return await withTimeLimit(Promise.race([verdict, aborted]), hook.deadlineMs, () => {
      return new Error(`no verdict within ${hook.deadlineMs} ms`)
    })
  } finally {
    release()
    // Ends what the hook still does.
    controller.abort()
    aborted.catch(() => {})
  }
}

/** Hooks are code of the operator: what is no verdict is a failure. */
function validate(verdict: Verdict, { length }: readonly HookText[]): Verdict {
  if (verdict === undefined) return undefined
  if (typeof verdict === 'object' && verdict !== null) {
    if ('refuse' in verdict && typeof verdict.refuse === 'string') return verdict
    if ('texts' in verdict && Array.isArray(verdict.texts)) {
      const { texts } = verdict
      if (texts.length === length && texts.every((text) => typeof text === 'string')) return verdict
    }
  }
  throw new TypeError('a hook must return nothing, { refuse } or { texts } of the same length')
}

function callOf({ context, request, modelId, agentId, surface }: GenerationJob): HookCall {
  const { requestId, principal, keyId } = context
  return {
    requestId,
    userId: principal.userId,
    groups: principal.groups,
    keyId,
    model: modelId ?? request.model,
    agentId: agentId ?? null,
    surface: surface ?? null,
    request,
  }
}

function cancelled({ reason }: AbortSignal): AppError {
  return reason instanceof AppError
    ? reason
    : new AppError('client_closed', 'The client disconnected.')
}
