import { effect } from '@preact/signals'
import { render } from 'preact'
import { Login } from './session/login.tsx'
import { me, openSession } from './session/session.ts'
import { startRouter } from './shell/router.ts'
import { Shell } from './shell/shell.tsx'
import { loadTheme } from './shell/theme.ts'
import { loadOverrides } from './texts/overrides.ts'
import { applyLanguage, language, preferredLanguage } from './texts/texts.ts'
import { ConfirmHost } from './ui/confirm.tsx'
import { refuseOtherDrops } from './ui/drop.ts'
import { ToastHost } from './ui/toasts.tsx'

function App() {
  const user = me.value
  if (user === undefined) return null
  return (
    <>
      {user === null ? <Login /> : <Shell />}
      <ConfirmHost />
      <ToastHost />
    </>
  )
}

effect(() => {
  if (me.value) void loadTheme()
})
effect(() => {
  if (me.value && language.value) void loadOverrides()
})

startRouter()
refuseOtherDrops()
await applyLanguage(preferredLanguage())
const root = document.querySelector('#app')
if (root !== null) render(<App />, root)
await openSession()
