import type { Series } from '../options.js'

/** The first columns, one and all in every version. */
const COMMON = `
pxname svname qcur qmax scur smax slim stot bin bout dreq dresp ereq econ eresp wretr wredis
status weight act bck chkfail chkdown lastchg downtime qlimit pid iid sid throttle lbtot
tracked type rate rate_lim rate_max check_status check_code check_duration hrsp_1xx hrsp_2xx
hrsp_3xx hrsp_4xx hrsp_5xx hrsp_other hanafail req_rate req_rate_max req_tot cli_abrt
srv_abrt comp_in comp_out comp_byp comp_rsp lastsess last_chk last_agt qtime ctime rtime
ttime agent_status agent_code agent_duration check_desc agent_desc check_rise check_fall
check_health agent_rise agent_fall agent_health addr cookie mode algo conn_rate
conn_rate_max conn_tot intercepted dcon dses wrew connect reuse cache_lookups cache_hits
srv_icur src_ilim qtime_max ctime_max rtime_max ttime_max eint idle_conn_cur safe_conn_cur
used_conn_cur need_conn_est uweight agg_server_status agg_server_check_status
agg_check_status`

/** Only since 3.0. */
const SINCE_3_0 = `
srid sess_other h1sess h2sess h3sess req_other h1req h2req h3req proto`

/** What HTTP/3 and QUIC count: since 3.0, always empty here. */
const QUIC = `
h3_data h3_headers h3_cancel_push h3_push_promise h3_max_push_id h3_goaway h3_settings
h3_no_error h3_general_protocol_error h3_internal_error h3_stream_creation_error
h3_closed_critical_stream h3_frame_unexpected h3_frame_error h3_excessive_load h3_id_error
h3_settings_error h3_missing_settings h3_request_rejected h3_request_cancelled
h3_request_incomplete h3_message_error h3_connect_error h3_version_fallback
pack_decompression_failed qpack_encoder_stream_error qpack_decoder_stream_error
quic_rxbuf_full quic_dropped_pkt quic_dropped_pkt_bufoverrun quic_dropped_parsing_pkt
quic_socket_full quic_sendto_err quic_sendto_err_unknwn quic_sent_pkt quic_lost_pkt
quic_too_short_dgram quic_retry_sent quic_retry_validated quic_retry_error
quic_half_open_conn quic_hdshk_fail quic_stless_rst_sent quic_conn_migration_done
quic_transp_err_no_error quic_transp_err_internal_error quic_transp_err_connection_refused
quic_transp_err_flow_control_error quic_transp_err_stream_limit_error
quic_transp_err_stream_state_error quic_transp_err_final_size_error
quic_transp_err_frame_encoding_error quic_transp_err_transport_parameter_error
quic_transp_err_connection_id_limit quic_transp_err_protocol_violation_error
quic_transp_err_invalid_token quic_transp_err_application_error
quic_transp_err_crypto_buffer_exceeded quic_transp_err_key_update_error
quic_transp_err_aead_limit_reached quic_transp_err_no_viable_path
quic_transp_err_crypto_error quic_transp_err_unknown_error quic_data_blocked
quic_stream_data_blocked quic_streams_blocked_bidi quic_streams_blocked_uni`

/** What HTTP/2 and HTTP/1 connections count: of frontends and backends, always 0 here. */
const MUX = `
h2_headers_rcvd h2_data_rcvd h2_settings_rcvd h2_rst_stream_rcvd h2_goaway_rcvd
h2_detected_conn_protocol_errors h2_detected_strm_protocol_errors h2_rst_stream_resp
h2_goaway_resp h2_open_connections h2_backend_open_streams h2_total_connections
h2_backend_total_streams h1_open_connections h1_open_streams h1_total_connections
h1_total_streams h1_bytes_in h1_bytes_out h1_spliced_bytes_in h1_spliced_bytes_out`

/** Of TLS connections: always 0 here. */
const SSL = 'ssl_sess ssl_reused_sess ssl_failed_handshake'
const OCSP = 'ssl_ocsp_staple ssl_failed_ocsp_staple'

/** The columns of `show stat`, in order; one of them is really called `-`. */
export const COLUMNS: Readonly<Record<Series, readonly string[]>> = {
  '2.6': words(COMMON, '-', SSL, MUX),
  '3.0': words(COMMON, SINCE_3_0, '-', SSL, QUIC, MUX),
  '3.2': words(COMMON, SINCE_3_0, '-', SSL, OCSP, QUIC, MUX),
}

/** What a server's row has as 0 rather than as nothing. */
export const SERVER_ZEROS: ReadonlySet<string> = new Set(words(SSL, OCSP, 'srid'))

/** What a backend's row has as 0 rather than as nothing. */
export const BACKEND_ZEROS: ReadonlySet<string> = new Set(words(SSL, OCSP, MUX))

/** What a frontend's row has as 0 rather than as nothing. */
export const FRONTEND_ZEROS: ReadonlySet<string> = new Set(words(SSL, OCSP, QUIC, MUX))

function words(...texts: readonly string[]): readonly string[] {
  return texts.flatMap((text) => text.trim().split(/\s+/))
}
