import { Type } from '@sinclair/typebox'
import { flag, reloading, section, whole } from '#config/keys.ts'

/** The keys of `HealthSettings`. */
export const healthKeys = {
  health: reloading(
    section(
      'Ejection of failing upstreams, while a model has others. Each worker learns by itself.',
      {
        failuresMax: whole(
          'Consecutive failures after which an upstream, or one of its models, is ejected.',
          { default: 3, minimum: 1 },
        ),
        ejectionMs: whole('First ejection; it doubles with each one in a row.', {
          default: 5_000,
          minimum: 1,
        }),
        ejectionMaxMs: whole('Longest ejection.', { default: 60_000, minimum: 1 }),
        recoveryMs: whole('Time in which the share of a recovered upstream grows to normal.', {
          default: 10_000,
          minimum: 0,
        }),
        silenceMs: whole(
          'An upstream that sends nothing for this long, or for twice its usual time, while requests wait is checked.',
          { default: 1_000, minimum: 1 },
        ),
        patienceMs: whole(
          'A request without output for this long moves to another upstream, if no other request got output meanwhile. Upstreams and models that are usually slower get more time.',
          { default: 30_000, minimum: 1 },
        ),
        probe: flag(
          'Whether silent and unreachable upstreams are checked by requesting their model list, and silent models by a generation of one token; otherwise real requests are used.',
          true,
        ),
        probeMs: whole('Time that such a check has.', { default: 2_000, minimum: 1 }),
        retryShare: Type.Number({
          description: 'Retries as a share of the requests to an upstream.',
          default: 0.2,
          minimum: 0,
          maximum: 1,
        }),
        retriesPerSecond: whole('Retries per second that are allowed in any case.', {
          default: 10,
          minimum: 0,
        }),
      },
    ),
  ),
}
