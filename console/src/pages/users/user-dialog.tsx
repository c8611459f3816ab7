import { useMemo, useState } from 'preact/hooks'
import { call } from '../../api/call.ts'
import type { User } from '../../api/generated/types.ts'
import { me } from '../../session/session.ts'
import { format, text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { confirm } from '../../ui/confirm.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Fault } from '../../ui/notice.tsx'
import { useQuery } from '../../ui/query.ts'
import { perform } from '../../ui/toasts.tsx'
import { KeyList } from '../keys/key-list.tsx'
import { serviceAccountKeys } from '../keys/key-source.ts'

/** What a user may do and why; a service account also with its keys. */
export function UserDialog({
  user,
  onChange,
  onClose,
}: {
  user: User
  onChange: () => void
  onClose: () => void
}) {
  const path = { user_id: user.id }
  const query = useQuery((signal) => call('GET /v1/users/{user_id}', { path, signal }), user.id)
  const [isCreating, setCreating] = useState(false)
  const keys = useMemo(() => serviceAccountKeys(user.id), [user.id])
  const name = user.name ?? user.subject
  const isDisabled = query.data ? query.data.disabled_at !== null : user.disabled_at !== null
  const isSelf = me.value?.id === user.id

  const toggle = async () => {
    if (!isDisabled) {
      const isSure = await confirm({
        title: text('users.disable_title', { name }),
        consequence: text('users.disable_consequence', { name }),
        action: text('users.disable'),
        isDangerous: true,
      })
      if (!isSure) return
    }
    await perform(
      () => call('PATCH /v1/users/{user_id}', { path, body: { disabled: !isDisabled } }),
      text(isDisabled ? 'users.now_enabled' : 'users.now_disabled', { name }),
    )
    query.reload()
    onChange()
  }
  const remove = async () => {
    const isSure = await confirm({
      title: text('users.delete_title', { name }),
      consequence: text('users.delete_consequence'),
      action: text('action.delete'),
      isDangerous: true,
    })
    if (!isSure) return
    await perform(
      () =>
        call('DELETE /v1/service-accounts/{service_account_id}', {
          path: { service_account_id: user.id },
        }),
      text('users.deleted', { name }),
    )
    onClose()
  }
  return (
    <Dialog wide title={name} onClose={onClose}>
      {query.error !== undefined && <Fault error={query.error} onRetry={query.reload} />}
      <dl class="facts">
        <dt>{text('users.subject')}</dt>
        <dd class="mono">{user.subject}</dd>
        <dt>{text('users.kind')}</dt>
        <dd>{text(`users.kind.${user.kind}`)}</dd>
        <dt>{text('users.since')}</dt>
        <dd>{format.time(user.created_at)}</dd>
        <dt>{text('users.groups')}</dt>
        <dd>
          <span class="row">
            {query.data?.groups.map((group) => (
              <span key={group.id} class="tag">
                {group.name} ·{' '}
                {group.sources.map((source) => text(`groups.source.${source}`)).join(', ')}
              </span>
            ))}
          </span>
        </dd>
        <dt>{text('groups.permissions')}</dt>
        <dd>
          <span class="row">
            {query.data?.permissions.map((permission) => (
              <span key={permission} class="tag">
                {text(`permission.${permission}`)}
              </span>
            ))}
          </span>
        </dd>
      </dl>
      {/* What stands below contents that arrive would move away under the pointer. */}
      {!query.isLoading && (
        <>
          <div class="row">
            <Button disabled={isSelf} onClick={() => void toggle()}>
              {text(isDisabled ? 'users.enable' : 'users.disable')}
            </Button>
            {user.kind === 'service' && (
              <Button kind="danger" onClick={() => void remove()}>
                {text('users.delete')}
              </Button>
            )}
          </div>
          {user.kind === 'service' && (
            <section class="stack tight">
              <div class="row between">
                <h3>{text('keys.title')}</h3>
                <Button size="small" icon="plus" onClick={() => setCreating(true)}>
                  {text('keys.create')}
                </Button>
              </div>
              <KeyList source={keys} isCreating={isCreating} onCreating={setCreating} />
            </section>
          )}
        </>
      )}
    </Dialog>
  )
}
