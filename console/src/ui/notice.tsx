import type { ComponentChildren } from 'preact'
import { messageOf } from '../api/call.ts'
import { ApiError } from '../api/errors.ts'
import { type TextKey, text } from '../texts/texts.ts'
import { Button } from './button.tsx'
import { Icon, type IconName } from './icon.tsx'

export function Notice({
  kind = 'info',
  children,
}: {
  kind?: 'info' | 'bad' | 'warn'
  children: ComponentChildren
}) {
  return (
    <div class={`notice ${kind}`} role={kind === 'bad' ? 'alert' : undefined}>
      <Icon name={kind === 'info' ? 'info' : 'warning'} />
      <div class="grow stack tight">{children}</div>
    </div>
  )
}

/** What a caller can do about a failure, by its status. */
export function adviceFor(error: unknown): TextKey | null {
  if (!(error instanceof ApiError)) return null
  const { status, code } = error
  if (code === 'budget_exceeded' || code === 'insufficient_quota') return 'advice.budget'
  if (status === 0) return 'advice.unreachable'
  if (status === 401) return 'advice.login'
  if (status === 403) return 'advice.permission'
  if (status === 404) return 'advice.missing'
  if (status === 409 || status === 412) return 'advice.changed'
  if (status === 429) return 'advice.limit'
  if (code === 'service_unavailable') return 'advice.unavailable'
  if (status === 502 || status === 503 || status === 504) return 'advice.upstream'
  return status >= 500 ? 'advice.fault' : null
}

/** A failure: what happened, what to do, and the request id for a report. */
export function Fault({ error, onRetry }: { error: unknown; onRetry?: (() => void) | undefined }) {
  const advice = adviceFor(error)
  const requestId = error instanceof ApiError ? error.requestId : null
  return (
    <Notice kind="bad">
      <strong>{messageOf(error)}</strong>
      {advice !== null && <p>{text(advice)}</p>}
      <div class="row">
        {onRetry !== undefined && (
          <Button size="small" icon="refresh" onClick={onRetry}>
            {text('action.retry')}
          </Button>
        )}
        {error instanceof ApiError && (
          <span class="small muted">
            <code>{error.code}</code>
            {requestId !== null && (
              <>
                {' · '}
                {text('error.request')} <code>{requestId}</code>
              </>
            )}
          </span>
        )}
      </div>
    </Notice>
  )
}

/** Says what belongs here and how to get it. */
export function Empty({
  icon,
  title,
  children,
  action,
}: {
  icon: IconName
  title: string
  children: ComponentChildren
  action?: ComponentChildren
}) {
  return (
    <div class="empty">
      <Icon name={icon} size={32} />
      <h2>{title}</h2>
      <p>{children}</p>
      {action}
    </div>
  )
}
