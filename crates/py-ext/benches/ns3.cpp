// TCP between two hosts on ns-3, for `peers.py`: `tcp MS` simulates 32 bulk transfers over a link of 10 Gb/s for MS ms, as
// nicety's stream of 32 connections, and prints the received bytes.

#include <ns3/applications-module.h>
#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>

#include <cstdlib>
#include <iostream>

using namespace ns3;

static const int CONNECTIONS = 32;
static const uint16_t PORT = 5001;

int main(int count, char** words)
{
    Time end = MilliSeconds(count > 1 ? std::atoi(words[1]) : 10);
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1460));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 20));
    NodeContainer hosts;
    hosts.Create(2);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue("10Gbps"));
    link.SetChannelAttribute("Delay", StringValue("1us"));
    NetDeviceContainer devices = link.Install(hosts);
    InternetStackHelper().Install(hosts);
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    Ipv4InterfaceContainer interfaces = addresses.Assign(devices);

    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), PORT));
    ApplicationContainer sinks = sink.Install(hosts.Get(1));
    BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(interfaces.GetAddress(1), PORT));
    bulk.SetAttribute("SendSize", UintegerValue(65536));
    ApplicationContainer senders;
    for (int each = 0; each < CONNECTIONS; each++)
        senders.Add(bulk.Install(hosts.Get(0)));
    sinks.Start(Seconds(0));
    senders.Start(Seconds(0));
    Simulator::Stop(end);
    Simulator::Run();
    std::cout << DynamicCast<PacketSink>(sinks.Get(0))->GetTotalRx() << "\n";
    Simulator::Destroy();
    return 0;
}
