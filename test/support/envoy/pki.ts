import { spawnSync } from 'node:child_process'
import type { TlsFiles } from './bootstrap.js'

/** An authority, and a certificate of its own for a server (as `localhost`) and for a client, by openssl. */
export function makePki(dir: string): { readonly server: TlsFiles; readonly client: TlsFiles } {
  const run = (...args: string[]): void => {
    const { status, stderr } = spawnSync('openssl', args, { cwd: dir, encoding: 'utf8' })
    if (status !== 0) throw new Error(stderr)
  }
  const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  run('req', '-x509', ...ec, '-keyout', 'ca.key', '-out', 'ca.pem', '-days', '2', '-subj', '/CN=ca')
  for (const name of ['server', 'client']) {
    const subject = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=DNS:localhost']
    run('req', ...ec, '-keyout', `${name}.key`, '-out', `${name}.csr`, ...subject)
    const signed = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2']
    run(
      ...['x509', '-req', '-in', `${name}.csr`, ...signed],
      ...['-copy_extensions', 'copy', '-out', `${name}.pem`],
    )
  }
  const files = (name: string): TlsFiles => ({
    ca: `${dir}/ca.pem`,
    cert: `${dir}/${name}.pem`,
    key: `${dir}/${name}.key`,
  })
  return { server: files('server'), client: files('client') }
}
