/** Addresses of peers, as users write them. */

export type PeerUri = { readonly uri: string; readonly problem: null } | { readonly uri: null; readonly problem: string };

const PORT_MAX = 65_535;

/** `http://host:port` or `https://host:port` without anything behind it, or what is wrong with `text`. */
export function peerUri(text: string): PeerUri {
  const refuse = (why: string): PeerUri => ({
    uri: null,
    problem: `\`${text}\` ${why}; expected is http://host:port, such as http://10.0.0.1:6335, or https:// with TLS between peers`,
  });
  const match = /^(https?):\/\/(\[[0-9a-f:.%]+\]|[^\s/:@?#[\]]+):(\d+)\/?$/i.exec(text);
  if (match === null) return refuse('is no address of a peer');
  const port = Number(match[3]);
  if (port < 1 || port > PORT_MAX) return refuse('has no port of 1 to 65535');
  return { uri: `${match[1]?.toLowerCase()}://${match[2]}:${port}`, problem: null };
}
