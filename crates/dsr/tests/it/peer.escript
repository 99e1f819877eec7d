#!/usr/bin/env escript
%%! -hidden
%% A node of OTP's `diameter`: `server HOST REALM PORT` answers ACR, `client HOST REALM PORT` sends as many as each line of its
%% input says, and prints result and Origin-Host of each answer.
-module(dsr_test_peer).
-mode(compile).
-export([main/1, peer_up/3, peer_down/3, pick_peer/4, prepare_request/3, prepare_retransmit/3,
         handle_answer/4, handle_error/4, handle_request/3]).

main([Role, Host, Realm, Port]) ->
    {ok, _} = application:ensure_all_started(diameter),
    true = diameter:subscribe(Role),
    ok = diameter:start_service(Role, [
        {'Origin-Host', Host}, {'Origin-Realm', Realm}, {'Vendor-Id', 0}, {'Product-Name', "OTP"},
        {'Acct-Application-Id', [3]}, {decode_format, map}, {string_decode, true},
        {application, [{alias, acct}, {dictionary, diameter_gen_acct_rfc6733}, {module, ?MODULE}]}]),
    To = {127, 0, 0, 1},
    {ok, _} = case Role of
        "server" ->
            diameter:add_transport(Role, {listen, [{transport_module, diameter_tcp},
                {transport_config, [{reuseaddr, true}, {ip, To}, {port, list_to_integer(Port)}]}]});
        "client" ->
            diameter:add_transport(Role, {connect, [{transport_module, diameter_tcp}, {reconnect_timer, 1000},
                {transport_config, [{raddr, To}, {rport, list_to_integer(Port)}]}]})
    end,
    serve(Role, Realm).

serve("server", _) ->
    io:format("listening~n"),
    _ = io:get_line(""),
    halt(0);
serve("client", Realm) ->
    receive Event when element(1, Event) =:= diameter_event, element(1, element(3, Event)) =:= up -> ok end,
    io:format("up~n"),
    ask(Realm).

ask(Realm) ->
    case io:get_line("") of
        eof -> halt(0);
        Line ->
            Count = list_to_integer(string:trim(Line)),
            [io:format("~s~n", [request(Realm, Number)]) || Number <- lists:seq(1, Count)],
            ask(Realm)
    end.

request(Realm, Number) ->
    Request = ['ACR', {'Session-Id', diameter:session_id("otp.example")}, {'Destination-Realm', Realm},
               {'Accounting-Record-Type', 1}, {'Accounting-Record-Number', Number}, {'Acct-Application-Id', [3]}],
    case diameter:call("client", acct, Request, [{timeout, 15000}]) of
        {answer, Result, Host} -> io_lib:format("~p ~s", [Result, Host]);
        Other -> io_lib:format("~p", [Other])
    end.

peer_up(_, _, State) -> State.
peer_down(_, _, State) -> State.
pick_peer([Peer | _], _, _, _) -> {ok, Peer};
pick_peer([], _, _, _) -> false.

prepare_request(Packet, _, {_, Caps}) ->
    [Name | Avps] = element(4, Packet),
    {Host, _} = element(2, Caps),
    {Realm, _} = element(3, Caps),
    {send, [Name | Avps ++ [{'Origin-Host', Host}, {'Origin-Realm', Realm}]]}.
prepare_retransmit(Packet, _, _) -> {send, Packet}.

handle_answer(Packet, _, _, _) ->
    [_ | Avps] = element(4, Packet),
    {answer, maps:get('Result-Code', Avps, none), maps:get('Origin-Host', Avps, "")}.
handle_error(Reason, _, _, _) -> {error, Reason}.

handle_request(Packet, _, {_, Caps}) ->
    [_ | Avps] = element(4, Packet),
    {Host, _} = element(2, Caps),
    {Realm, _} = element(3, Caps),
    Copied = [{Name, maps:get(Name, Avps)} || Name <- ['Session-Id', 'Accounting-Record-Type', 'Accounting-Record-Number']],
    {reply, ['ACA', {'Result-Code', 2001}, {'Origin-Host', Host}, {'Origin-Realm', Realm},
             {'Acct-Application-Id', [3]} | Copied]}.
