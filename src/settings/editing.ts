import type { Principal } from '#auth/principal.ts'
import type { IsExpected } from '#lib/entity-tag.ts'
import { refused } from '#lib/unprocessable.ts'
import { checkNames, demandReranker, type SettingChecks } from './checks.ts'
import { applyPatch, type Flat, patchBetween } from './flat.ts'
import { readPatch, readValue } from './patch.ts'
import { settingsByKey } from './schema.ts'
import type { Settings, Standing } from './settings.ts'
import { type Warning, warningsOf } from './warnings.ts'

/**
 * Changes of administrators. They throw `unprocessable`, `unknown_field` or `removed_field` for what
 * cannot be, `conflict` for what the environment gives, and `precondition_failed` for what another
 * change came before.
 */
export type Editing = {
  /** `body`: a merge patch. */
  patch(caller: Editor, body: unknown, how: EditHow): Promise<Edited>
  /** What was set after the change `revision` is set again; what it says is checked anew. */
  rollBack(caller: Editor, revision: number, how: EditHow): Promise<Edited>
}

type Editor = Pick<Principal, 'userId' | 'groups'>

export type EditHow = { readonly isExpected: IsExpected; readonly isDryRun: boolean }

export type Edited = {
  readonly before: Standing
  readonly after: Standing
  readonly warnings: readonly Warning[]
}

export function createEditing(
  settings: Pick<Settings, 'change' | 'layers' | 'setAfter'>,
  checks: SettingChecks,
): Editing {
  const { layers } = settings
  return {
    async patch(caller, body, how) {
      const patch = readPatch(body)
      layers.demandUnlocked(patch.keys())
      await checkNames(checks, caller, patch)
      const { before, after } = await settings.change(
        { actorId: caller.userId, ...how },
        ({ set }) => {
          const patched = applyPatch(set, patch)
          demandReranker({ values: layers.effective(patched) }, patch)
          return patched
        },
      )
      return edited({ before, after }, patch)
    },

    async rollBack(caller, revision, how) {
      const set = await settings.setAfter(revision)
      if (set === undefined) throw revisionNotFound(revision)
      const target = readSet(set)
      const isLocked = ([key]: readonly [string, unknown]) => layers.lockOf(key) !== null
      await checkNames(checks, caller, new Map([...target].filter((entry) => !isLocked(entry))))
      let patch: Flat = new Map()
      const changed = await settings.change({ actorId: caller.userId, ...how }, (standing) => {
        patch = patchBetween(standing.set, target)
        layers.demandUnlocked(patch.keys())
        demandReranker({ values: layers.effective(target) }, patch)
        return target
      })
      return edited(changed, patch)
    },
  }
}

function edited({ before, after }: Pick<Edited, 'before' | 'after'>, patch: Flat): Edited {
  const sides = { before: before.values, after: after.values }
  return { before, after, warnings: warningsOf({ ...sides, patch }) }
}

/** What was set in another time, by the rules of today. What this release does not know is kept. */
function readSet(set: Flat): Flat {
  return new Map(
    [...set].map(([key, value]) => [key, settingsByKey.has(key) ? readValue(key, value) : value]),
  )
}

function revisionNotFound(revision: number) {
  const sentence = `There is no revision ${revision}; see the history.`
  return refused('revision', sentence, 'revision_not_found')
}
