import { useState } from 'preact/hooks'
import { call } from '../../api/call.ts'
import { ApiError } from '../../api/errors.ts'
import { text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Fault, Notice } from '../../ui/notice.tsx'
import { useAction, useQuery } from '../../ui/query.ts'
import { announce } from '../../ui/toasts.tsx'
import { nestPatch, type Setting } from './config.ts'
import { SettingDifferences } from './differences.tsx'

type DryRun = {
  readonly before: unknown
  readonly after: unknown
  readonly warnings: readonly { readonly code: string; readonly message: string }[]
}

/** What a change does, as the API says it, before it is made. */
export function ReviewDialog({
  changes,
  settings,
  tag,
  onSaved,
  onStale,
  onClose,
}: {
  changes: Readonly<Record<string, unknown>>
  settings: readonly Setting[]
  tag: string | null
  onSaved: () => void
  /** Somebody else changed the configuration: it is loaded again, and the dialog shows the new effect. */
  onStale: () => void
  onClose: () => void
}) {
  const body = nestPatch(changes)
  const headers: Record<string, string> = tag === null ? {} : { 'if-match': tag }
  const trial = useQuery(
    async (signal) =>
      (await call('PATCH /v1/config', {
        body,
        query: { dry_run: true },
        headers,
        signal,
      })) as DryRun,
    JSON.stringify([tag, changes]),
  )
  const [fault, setFault] = useState<{ tag: string | null; error: unknown }>()
  const [isBusy, run] = useAction()
  const error = fault?.tag === tag ? fault.error : trial.error
  const isStale = error instanceof ApiError && error.status === 412
  const save = () =>
    run(async () => {
      try {
        await call('PATCH /v1/config', { body, headers })
        announce(text('settings.saved'))
        onSaved()
      } catch (error) {
        setFault({ tag, error })
      }
    })
  const needRestart = settings.some(
    ({ key, meta }) => meta.restart_required && Object.hasOwn(changes, key),
  )
  return (
    <Dialog
      wide
      title={text('settings.review_title')}
      onClose={onClose}
      onSubmit={() => void save()}
      actions={
        <>
          <Button onClick={onClose}>{text('action.cancel')}</Button>
          <Button
            kind="primary"
            type="submit"
            disabled={isBusy || trial.data === undefined || error !== undefined}
          >
            {text('action.save')}
          </Button>
        </>
      }
    >
      {error !== undefined && <Fault error={error} onRetry={isStale ? onStale : undefined} />}
      {trial.data === undefined && trial.error === undefined && <div class="skeleton" />}
      {trial.data !== undefined && (
        <>
          <SettingDifferences before={trial.data.before} after={trial.data.after} />
          {trial.data.warnings.map(({ code, message }) => (
            <Notice key={code} kind="warn">
              {message}
            </Notice>
          ))}
          <p class="muted">{text(needRestart ? 'settings.after_restart' : 'settings.at_once')}</p>
        </>
      )}
    </Dialog>
  )
}
